{# The commit of a batch: past and current hold it from here on. -#}
{% macro commit(name) -%}
  {%- do pace(true) -%}
  {% call statement('commit') %}
insert into {{ source('gold_state', 'applied') }} (table_name, source, through_batch_id, through_change_seq, applied_at)
select '{{ name }}', source, _through_batch_id, _through_change_seq, current_timestamp()
from {{ target.schema }}.{{ name }}__folded where _through_batch_id is not null
  {% endcall %}
  {%- do gold_state().staged.update({name: false}) -%}
{%- endmacro %}
