{# Compare a table's gold with a fold of everything that silver holds of it, made from nothing: `inlet verify`.

   Out: `<t>__verify_differences`, one row per version or change in which they differ: kind, source, key, change_seq, difference;
   and one row of kind `compared` with the number of versions. Ranges of keys whose hashes agree are not compared row by row. -#}
{% macro verify(name) -%}
  {%- set verified, behind = target.schema ~ '.' ~ name ~ '__verify', [] -%}
  {%- for (table, source), applied in gold_state().applied.items() if table == name -%}
    {%- do behind.append({'source': source, 'applied_batch_id': -1, 'applied_change_seq': none, 'through_batch_id': applied.batch_id}) -%}
  {%- endfor -%}
  {%- if behind -%}
    {%- do run_query('create or replace table ' ~ verified ~ '_log using delta as\n' ~ typed_changes(name, behind)) -%}
    {%- do create_staging(name, 'verify_versions') -%}
    {%- do fold_into(name, survey(name, behind, verified ~ '_log'), 'verify_versions') -%}
    {%- do run_query('create or replace table ' ~ verified ~ '_differences using delta as\n' ~ differences(name, verified)) -%}
  {%- endif -%}
{%- endmacro %}


{% macro differences(name, verified) -%}
{%- set contract, gold = contract(name), target.schema ~ '.' ~ name -%}
{%- set columns = version_columns(contract) -%}
{%- set key -%}
to_json(named_struct({% for k in contract.key %}'{{ k }}', `{{ k }}`{{ ', ' if not loop.last }}{% endfor %}), map('ignoreNullFields', 'false'))
{%- endset -%}
{%- set log_columns = graph.nodes['model.inlet.' ~ name ~ '__before_after'].columns.keys() | reject('equalto', 'column_states') | list -%}
with gold_rows as (
  select 'version' as kind, source, {{ key }} as key, valid_from_seq as change_seq, xxhash64({{ columns_of(columns) }}) as digest from {{ gold }}__past
  union all
  select 'version', source, {{ key }}, valid_from_seq, xxhash64({{ columns_of(columns) | replace('`valid_to_seq`', 'cast(null as string)') }}) from {{ gold }}__current
  union all
  select 'change', source, operation, change_seq, xxhash64({{ columns_of(log_columns) }}, to_json(column_states)) from {{ gold }}__before_after
),

silver_rows as (
  select 'version' as kind, source, {{ key }} as key, valid_from_seq as change_seq, xxhash64({{ columns_of(columns) }}) as digest
  from {{ verified }}_versions where valid_from_seq is not null
  union all
  select 'change', source, operation, change_seq, xxhash64({{ columns_of(log_columns) }}, to_json(column_states)) from {{ verified }}_log
),

ranges as (
  select kind, pmod(xxhash64(source, key), 256) as range, count_if(is_gold) as num_gold, count_if(not is_gold) as num_silver,
         sum(if(is_gold, 1, -1) * cast(digest as decimal(38,0))) as digests
  from (select *, true as is_gold from gold_rows union all select *, false from silver_rows)
  group by all
),

differing as (
  select kind, range from ranges where num_gold <> num_silver or digests <> 0
)

select coalesce(g.kind, s.kind) as kind, coalesce(g.source, s.source) as source, coalesce(g.key, s.key) as key,
       coalesce(g.change_seq, s.change_seq) as change_seq,
       case when g.kind is null then 'not in gold' when s.kind is null then 'only in gold' else 'other values in gold' end as difference
from (select g.* from gold_rows g join differing d on d.kind = g.kind and d.range = pmod(xxhash64(g.source, g.key), 256)) g
full outer join (select s.* from silver_rows s join differing d on d.kind = s.kind and d.range = pmod(xxhash64(s.source, s.key), 256)) s
  on s.kind = g.kind and s.source = g.source and s.key = g.key and s.change_seq = g.change_seq
where g.digest is distinct from s.digest
union all
select 'compared', null, null, null, cast(sum(num_silver) as string) from ranges where kind = 'version'
{%- endmacro %}
