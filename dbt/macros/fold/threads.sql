{# Follow rows through their key changes: one row per key change of a row that was there, with the place where its
   thread starts. Each round doubles the number of key changes followed, so a chain of n takes log2(n) rounds; mostly
   there is none. In: the kept tables, the timeline last; rounds are kept too. Whether starts matter: only partial
   images carry. Out: a query. -#}
{% macro threads(name, is_local, kept, is_start_needed) -%}
  {%- set followed = namespace(query="select source, change_seq as opened_seq, opened_seq as thread_seq from "
      ~ kept[-1]
                                     ~ " where kind = 'leaves' and not is_row_absent", is_done=not is_start_needed) -%}
  {%- for round in range(64) if not followed.is_done -%}
    {%- set pairs = '(' ~ followed.query ~ ') t %s join (' ~ followed.query
                     ~ ') e on e.source = t.source and e.opened_seq = t.thread_seq' -%}
    {%- if rows_of_gold(name, 'select 1 as found from ' ~ pairs | replace('%s', 'left semi') ~ ' limit 1', is_local) -%}
      {%- do kept.append(keep(name, is_local, 'threads_' ~ round,
            'select t.source, t.opened_seq, coalesce(e.thread_seq, t.thread_seq) as thread_seq from ' ~
               pairs | replace('%s', 'left'), ['source', 'opened_seq', 'thread_seq'])) -%}
      {%- set followed.query = 'select * from ' ~ kept[-1] -%}
    {%- else -%}
      {%- set followed.is_done = true -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(followed.query) }}
{%- endmacro %}
