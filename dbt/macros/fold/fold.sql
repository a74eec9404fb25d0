{# The semantics: timelines become versions. tests/reference.py says the same in plain Python, and tests prove it.

   Any entry closes the version before it at its key; all but `leaves` and `gone` open one. A thread is one row followed
   through its key changes. It starts where no value can be carried over; along it a column holds what was last given,
   and is not supplied where it was `lost` since: what it holds is what it was before.
   What a batch does not ask for (see `survey`) is left out of the query.

   What an entry makes of its key, by what stands there just before (`is_row_absent`) and by `timeline`'s verdicts:

   | entry              | no row there                         | a row there                                          |
   |--------------------|--------------------------------------|------------------------------------------------------|
   | set, INSERT        | a version                            | a version, `insert_over_row`; displacing: no conflict|
   | set, REFRESH       | a version                            | a version                                            |
   | update             | a version, `update_without_row`;     | a version, what it does not supply is carried over   |
   |                    | UPSERT: no conflict                  |                                                      |
   | arrives, of a row  | a version, what it lacks is carried  | the same, `key_change_onto_row`; displacing: none    |
   |                    | over from the key that was left      |                                                      |
   | arrives, of no row | a version, `update_without_row`;     | a version, `update_without_row_onto_row`;            |
   |                    | UPSERT: no conflict                  | UPSERT: `key_change_onto_row`                        |
   | leaves, gone       | nothing                              | ends the version                                     |
   | emptied            | nothing                              | a version, null in the columns that are added again; |
   |                    |                                      | none where another entry is at its place             |
   | base               | the version that gold has: written again only where it ends, or where a batch rewinds       |

   A version lasts up to the next entry of its key that is not displaced. -#}
{% macro fold(name, batch, timeline, threads=none) -%}
{%- set contract = contract(name) -%}
{%- set columns = contract.columns | map(attribute='name') | list -%}
{%- set thread = 'thread_seq' if batch.has_key_change else keys(contract.key) -%}
{%- set no_lineage = (['null'] * (lineage() | length)) | join(', ') -%}
{%- set lineage = lineage() | join(', ') -%}
with timeline as (
  {{ timeline }}
),
{%- if batch.has_key_change %}

traced as (
  select e.*, coalesce(t.thread_seq, e.opened_seq) as thread_seq,
         kind in ('set', 'base') or kind = 'update' and is_row_absent
           or kind = 'arrives' and t.thread_seq is null as is_start
  from timeline e
  left join ({{ threads }}) t on t.source = e.source and t.opened_seq = e.opened_seq
  where kind not in ('gone', 'leaves') {{- " and (kind <> 'emptied' or not is_row_absent)" if batch.has_added }}
),
{%- else %}

traced as (
  select *, kind in ('gone', 'set', 'base') or is_row_absent as is_start from timeline
  {{- " where kind <> 'emptied' or not is_row_absent" if batch.has_added }}
),
{%- endif %}

judged as (
  select * except (conflict, key_changed), key_changed or is_displacing as key_changed,
         case when kind = 'base' and not is_displacing then conflict
              when kind = 'base' then case when conflict = 'update_without_row_onto_row' then 'update_without_row' end
              when kind = 'set' and operation = 'INSERT' and not is_row_absent and not is_displacing
                then 'insert_over_row'
              when kind = 'arrives' and not is_row_absent and not is_displacing
                then case when is_start and operation = 'UPDATE' then 'update_without_row_onto_row'
                          else 'key_change_onto_row' end
              when operation = 'UPDATE' and (kind = 'arrives' and is_start or kind = 'update' and is_row_absent)
                then 'update_without_row'
              end as conflict
  from traced
),
{%- if batch.has_partial %}

carried as (   -- a start supplies `not supplied` too, so nothing comes from before it
  select *,
    {%- for c in columns %}
         last_value(case when kind = 'base' or not array_contains(not_supplied, {{ text_literal(c) }})
                           then named_struct('value', image.{{ identifier(c) }},
                                             'is_absent', array_contains(not_supplied, {{ text_literal(c) }}))
                         when is_start then named_struct('value', null, 'is_absent', true) end)
           ignore nulls over thread as _column_{{ loop.index }}{{ ',' if not loop.last }}
         {%- if batch.has_lost %}{{ ',' if loop.last }}
         last_value(case when array_contains(lost, {{ text_literal(c) }}) then true
                         when is_start or not array_contains(not_supplied, {{ text_literal(c) }}) then false end)
           ignore nulls over thread as _is_lost_{{ loop.index }}{{ ',' if not loop.last }}
         {%- endif %}
    {%- endfor %}
  from judged
  window thread as (partition by source, {{ thread }} order by change_seq
                    {{- ', place' if batch.has_added or not batch.has_key_change }}
                    rows between unbounded preceding and current row)
),
{%- endif %}

versions as (
  select source, kind as _kind,
         {%- for c in columns %}
         {%- set carried = '_column_%s.value' % loop.index %}
         {{ carried if batch.has_partial else 'image.' ~ identifier(c) }} as _value_{{ loop.index }},
         {%- endfor %}
         change_seq as valid_from_seq, next_seq as valid_to_seq,
         {%- if batch.has_partial %}
         array_compact({{ array_of(batch) }}(
           {%- for c in columns %}
           case when _column_{{ loop.index }}.is_absent
             {{- ' or _is_lost_%s' % loop.index if batch.has_lost }} then {{ text_literal(c) }} end
             {{- ',' if not loop.last }}
           {%- endfor %}
         )) as not_supplied,
         {%- else %}
         not_supplied,
         {%- endif %}
         conflict, {{ lineage }}, change_seq = last_opened_seq as _is_last, is_rewound or is_displacing as _is_rewritten
  from {{ 'carried' if batch.has_partial else 'judged' }}
)

select source, {% for c in columns %}_value_{{ loop.index }}, {% endfor %}valid_from_seq, valid_to_seq,
       cardinality(not_supplied) = 0 as is_complete, not_supplied, conflict, {{ lineage }}, _is_last,
       cast(null as bigint) as _through_batch_id, cast(null as string) as _through_change_seq
from versions
where _kind not in ('gone', 'leaves') and (_kind <> 'base' or valid_to_seq is not null or _is_rewritten)
{{- " and (_kind <> 'emptied' or valid_to_seq is distinct from valid_from_seq)" if batch.has_added }}
{%- if batch.has_added and batch.has_rewind %}
union all     -- a late change has taken away the row, so gold must not hold the version: no end, and not the last
select source, {% for c in contract.columns -%}
         {%- if c.name in contract.key %}_key_{{ contract.key.index(c.name) + 1 }}{% else %}null{% endif %}, {#-
         #} {% endfor -%}
       change_seq, null, null, null, null, {{ no_lineage }}, false, null, null
from timeline where kind = 'emptied' and (is_row_absent or next_seq = change_seq) and not is_opened_here
{%- endif %}
union all     -- how far gold comes with this batch
select source, {% for c in columns %}null, {% endfor %}null, null,
       null, null, null, {{ no_lineage }}, null,
       through_batch_id, through_seq
from ({{ progress_of(batch) }})
{%- endmacro %}
