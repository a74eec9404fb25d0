{# The typed log: what silver holds of one table in whole batches that the log does not hold yet. -#}
{% macro before_after(name) %}
{%- set lagging = progress(name) if execute else [] -%}
{%- if not lagging -%}
-- nothing new: {{ source('silver', 'changes') }} {{ source('silver', 'control_events') }}
-- {{ source('silver', 'batches') }} {{ source('gold_state', 'applied') }}
{%- else -%}
{{ typed_changes(name, lagging, this) }}
{%- endif -%}
{% endmacro %}
