{# The typed log: what silver holds of one table in whole batches that the log does not hold yet. -#}
{% macro before_after(name) %}
{%- set lagging = progress(name) if execute else [] -%}
{%- if not lagging -%}
-- nothing new: {{ source('silver', 'changes') }} {{ source('silver', 'control_events') }}
-- {{ source('silver', 'batches') }} {{ source('gold_state', 'applied') }}
{%- else -%}
{%- set new = gold_state().small.get(name, {'is_logged': true}) -%}
{%- set has_load_events = new.get('has_load_events', true) or contract(name).added_again -%}
{{ typed_changes(name, lagging, this if new.is_logged else none, has_load_events) }}
{%- endif -%}
{% endmacro %}
