{# The ledger and gold.applied, all tables in one query a run. Out: {whole: {(SCHEMA.TABLE, source): last batch that has the
   table}, applied: {(table, source): {batch_id, change_seq}}, staged: {table: is there a batch to commit}}. A run of dbt has
   one `graph`, so the state is kept there, under the run's id; `is_stale` asks again. #}
{% macro gold_state(is_stale=false) -%}
  {%- set state = graph.get('inlet_state', {}) -%}
  {%- if is_stale or state.get('invocation_id') != invocation_id -%}
    {%- set state = {'invocation_id': invocation_id, 'whole': {}, 'applied': {}, 'staged': {}} -%}
    {%- set query -%}
select true as is_whole, source, name, max(batch_id) as batch_id, cast(null as string) as change_seq
from (select source, batch_id, explode(tables) as name from {{ source('silver', 'batches') }}) group by source, name
union all
select false, source, table_name, max(through_batch_id), max(through_change_seq)
from {{ source('gold_state', 'applied') }} group by source, table_name
    {%- endset -%}
    {%- for row in run_query(query) -%}
      {%- if row.is_whole -%}
        {%- do state.whole.update({(row.name, row.source): row.batch_id | int}) -%}
      {%- else -%}
        {%- do state.applied.update({(row.name, row.source): {'batch_id': row.batch_id | int, 'change_seq': row.change_seq}}) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- do graph.update({'inlet_state': state}) -%}
  {%- endif -%}
  {{ return(state) }}
{%- endmacro %}
