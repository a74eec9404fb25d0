{# The commit of a batch: past and current hold it from here on. -#}
{% macro commit(name) -%}
  {%- set our = ours(contract(name)) -%}
  {%- do small_query_settings(true) -%}
  {% call statement('commit') %}
insert into {{ source('gold_state', 'applied') }} (table_name, source, through_batch_id, through_change_seq, applied_at)
select '{{ name }}', {{ our.source }}, {{ our._through_batch_id }}, {{ our._through_change_seq }}, {{ applied_at() }}
from {{ target.schema }}.{{ name }}__folded where {{ our._through_batch_id }} is not null
  {% endcall %}
  {%- do gold_state().staged.update({name: false}) -%}
{%- endmacro %}


{# The commit of a table without a key: its log holds all batches up to where the ledger comes. -#}
{% macro commit_log(name) -%}
  {%- set lagging = progress(name) -%}
  {%- set columns = {'source': 'string', 'applied_batch_id': 'bigint', 'applied_change_seq': 'string',
                    'through_batch_id': 'bigint'} -%}
  {%- if lagging -%}
  {% call statement('commit') %}
insert into {{ source('gold_state', 'applied') }} (table_name, source, through_batch_id, through_change_seq, applied_at)
select '{{ name }}', b.source, b.through_batch_id,
       greatest(coalesce(max(l.change_seq), ''), coalesce(b.applied_change_seq, '')), {{ applied_at() }}
from ({{ literals('lagging', columns, rows_of(lagging, columns.keys())) }}) b
left join {{ this }} l on l.source = b.source and l.batch_id > b.applied_batch_id
group by b.source, b.through_batch_id, b.applied_change_seq
  {% endcall %}
  {%- do reload_state(name) -%}
  {%- endif -%}
{%- endmacro %}


{# When a batch is committed: after all checks of gold, whose clock may have been ahead. #}
{% macro applied_at() -%}
  {%- set least_at = gold_state().least_at -%}
  {{ "timestamp '" ~ least_at ~ "'" if least_at else 'current_timestamp()' }}
{%- endmacro %}
