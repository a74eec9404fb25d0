{# The typed log: what silver holds of one table in whole batches that the log does not hold yet. -#}
{% macro before_after(name) %}
{%- set behind = progress(name) if execute else [] -%}
{%- if not behind -%}
-- nothing new: {{ source('silver', 'changes') }} {{ source('silver', 'control_events') }} {{ source('silver', 'batches') }} {{ source('gold_state', 'applied') }}
{%- else -%}
{{ typed_changes(name, behind, this) }}
{%- endif -%}
{% endmacro %}
