{# The last version of each key that the current batch touches; the materialization `current` keeps the open ones. -#}
{% macro current(name) -%}
-- depends_on: {{ ref(name ~ '__past') }} {{ source('gold_state', 'applied') }} {{ source('silver', 'batches') }}
{%- if execute %}
{%- set our = ours(contract(name)) %}
select {{ columns_of(version_columns(contract(name), is_current=true)) }}
from {{ target.schema }}.{{ name }}__folded where {{ our._is_last }} and {{ our.valid_to_seq }} is null
{%- endif -%}
{%- endmacro %}
