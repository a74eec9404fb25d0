{# The ledger and gold.applied, all tables in one query a run: {whole: {source: batch_id}, applied: {(table, source): {batch_id,
   change_seq}}, staged: {table: is there a batch to commit}}. A run has one `graph`, so the state is kept there, under the run's id;
   `is_stale` asks again. #}
{% macro gold_state(is_stale=false) -%}
  {%- set kept = graph.get('inlet_state', {}) -%}
  {%- if is_stale or kept.get('invocation_id') != invocation_id -%}
    {%- set kept = {'invocation_id': invocation_id, 'whole': {}, 'applied': {}, 'staged': {}} -%}
    {%- set query -%}
select table_name, source, max(through_batch_id) as batch_id, max(through_change_seq) as change_seq
from {{ source('gold_state', 'applied') }} group by table_name, source
union all
select null, source, max(batch_id), null from {{ source('silver', 'batches') }} group by source
    {%- endset -%}
    {%- for row in run_query(query) -%}
      {%- if row.table_name -%}
        {%- do kept.applied.update({(row.table_name, row.source): {'batch_id': row.batch_id | int, 'change_seq': row.change_seq}}) -%}
      {%- else -%}
        {%- do kept.whole.update({row.source: row.batch_id | int}) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- do graph.update({'inlet_state': kept}) -%}
  {%- endif -%}
  {{ return(kept) }}
{%- endmacro %}
