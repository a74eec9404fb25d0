{# The ledger and gold.applied, for all tables, once a run. Out: {whole: {(SCHEMA.TABLE, source): last batch that has the
   table}, applied: {(table, source): {batch_id, change_seq}}, staged: {table: is there a batch to commit}}. A run of dbt has
   one `graph`, so the state is kept there, under the run's id; `is_stale` asks again for all but what is staged. #}
{% macro gold_state(is_stale=false) -%}
  {%- set state = graph.get('inlet_state', {}) -%}
  {%- if is_stale or state.get('invocation_id') != invocation_id -%}
    {%- set said = {} if is_stale else handed() -%}
    {%- if not said -%}
      {%- do said.update({'ledger': [], 'applied': []}) -%}
      {%- set query -%}
select true as is_ledger, name, source, max(batch_id) as batch_id, cast(null as string) as change_seq
from (select source, batch_id, explode(tables) as name from {{ source('silver', 'batches') }}) group by source, name
union all
select false, table_name, source, max(through_batch_id), max(through_change_seq)
from {{ source('gold_state', 'applied') }} group by source, table_name
      {%- endset -%}
      {%- for row in run_query(query) -%}
        {%- do said['ledger' if row.is_ledger else 'applied'].append([row.name, row.source, row.batch_id | int, row.change_seq]) -%}
      {%- endfor -%}
    {%- endif -%}
    {%- set state = {'invocation_id': invocation_id, 'whole': {}, 'applied': {}, 'staged': state.staged if is_stale else {}} -%}
    {%- for row in said.ledger %}{% do state.whole.update({(row[0], row[1]): row[2]}) %}{% endfor -%}
    {%- for row in said.applied if row[2] >= state.applied.get((row[0], row[1]), {'batch_id': -1}).batch_id -%}
      {%- do state.applied.update({(row[0], row[1]): {'batch_id': row[2], 'change_seq': row[3]}}) -%}
    {%- endfor -%}
    {%- do graph.update({'inlet_state': state}) -%}
  {%- endif -%}
  {{ return(state) }}
{%- endmacro %}
