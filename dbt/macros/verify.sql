{# Compare a table's gold with a fold of everything that silver holds of it, made from nothing: `inlet verify`.

   Out: `<t>__verify_differences`, one row per version or change in which they differ: kind, source, key, change_seq,
   difference; and one row of kind `compared` with the number of versions, or of changes where the table has no key.
   Ranges of keys whose hashes agree are not compared row by row. -#}
{% macro verify(name) -%}
  {%- set gold, verified, lagging = target.schema ~ '.' ~ name, target.schema ~ '.' ~ name ~ '__verify', [] -%}
  {%- for (table, source), applied in gold_state().applied.items() if table == name -%}
    {%- do lagging.append({'source': source, 'applied_batch_id': -1, 'applied_change_seq': none,
                           'through_batch_id': applied.batch_id}) -%}
  {%- endfor -%}
  {%- set log = typed_changes(name, lagging) if lagging else 'select * from ' ~ gold ~ '__before_after where false' -%}
  {%- set properties = dict({'delta.enableDeletionVectors': 'false'}, **name_properties(contract(name))) -%}
  {%- do run_query('create or replace table ' ~ verified ~ '_log using delta\n'
                   ~ 'tblproperties (' ~ properties_list(properties) ~ ') as\n' ~ log) -%}
  {%- if contract(name).key -%}
    {%- do run_query('drop table if exists ' ~ verified ~ '_versions') -%}
    {%- do create_staging(name, 'verify_versions') -%}
    {%- set batch = survey(name, lagging, verified ~ '_log') if lagging else none -%}
    {%- if batch %}{% do fold_into(name, batch, 'verify_versions') %}{% endif -%}
  {%- endif -%}
  {%- do run_query('create or replace table ' ~ verified ~ '_differences using delta as\n'
                   ~ differences(name, gold, verified)) -%}
{%- endmacro %}


{% macro differences(name, gold, verified) -%}
{%- set contract, columns, our = contract(name), version_columns(contract(name)), ours(contract(name)) -%}
{%- set log_columns = graph.nodes['model.inlet.' ~ name ~ '__before_after'].columns.keys() | list -%}
{%- set key -%}
to_json(named_struct({% for k in contract.key %}{{ text_literal(k) }}, {{ identifier(k) }}{{ ', ' if not loop.last }}
        {%- endfor %}), map('ignoreNullFields', 'false'))
{%- endset -%}
{%- set place = our.source ~ ' as source, ' ~ key ~ ' as key, ' ~ our.valid_from_seq ~ ' as change_seq' -%}
with stored as (
  {%- if contract.key %}
  select true as is_gold, 'version' as kind, {{ place }}, {{ digest(columns) }} as digest
  from {{ gold }}__past
  union all
  select true, 'version', {{ place }}, {{ digest(columns) }}
  from (select *, cast(null as string) as {{ our.valid_to_seq }} from {{ gold }}__current)
  union all
  select false, 'version', {{ place }}, {{ digest(columns) }}
  from {{ verified }}_versions where {{ our.valid_from_seq }} is not null
  union all
  {%- endif %}
  select true as is_gold, 'change' as kind, source, operation as key, change_seq, {{ digest(log_columns) }} as digest
  from {{ gold }}__before_after
  union all
  select false, 'change', source, operation, change_seq, {{ digest(log_columns) }}
  from {{ verified }}_log
),

compared as (
  select *, pmod(xxhash64(source, key), 256) as range from stored
),

ranges as (
  select kind, range, count_if(is_gold) as num_gold, count_if(not is_gold) as num_silver,
         sum(if(is_gold, digest, -digest)) as digests
  from compared group by kind, range
),

differing as (
  select kind, source, key, change_seq, count_if(is_gold) as num_gold, count_if(not is_gold) as num_silver,
         sum(if(is_gold, digest, -digest)) as digests
  from compared
  left semi join (select kind as k, range as r from ranges where num_gold <> num_silver or digests <> 0)
    on k = kind and r = range
  group by kind, source, key, change_seq
)

select kind, source, key, change_seq,
       case when num_gold = 0 then 'not in gold'
            when num_silver = 0 then 'only in gold'
            when num_gold <> num_silver then 'more than once in gold'
            else 'other values in gold' end as difference
from differing where num_gold <> num_silver or digests <> 0
union all
select 'compared', null, null, null, cast(coalesce(sum(num_silver), 0) as string)
from ranges where kind = '{{ 'version' if contract.key else 'change' }}'
{%- endmacro %}


{# A hash of all that a row says; nulls and the borders of arrays and structs count. -#}
{% macro digest(columns) -%}
cast(xxhash64(to_json(struct({{ columns_of(columns) }}),
                      map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS',
                          'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))) as decimal(38,0))
{%- endmacro %}
