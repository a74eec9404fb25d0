{# Closed versions as the current batch stages them; the materialization `past` folds the batch first. -#}
{% macro past(name) -%}
-- depends_on: {{ ref(name ~ '__before_after') }} {{ source('gold_state', 'applied') }}
-- depends_on: {{ source('silver', 'batches') }}
{%- if execute %}
select {{ columns_of(version_columns(contract(name))) }}
from {{ target.schema }}.{{ name }}__folded where {{ ours(contract(name)).valid_to_seq }} is not null
{%- endif -%}
{%- endmacro %}
