{# Every version: past and current. Periods are half-open; the times come from the first 16 digits of the change_seq. -#}
{% macro history(name) -%}
{%- set past, current = ref(name ~ '__past'), ref(name ~ '__current') -%}
{%- if execute -%}
{%- set contract = contract(name) -%}
{%- set columns = version_columns(contract) -%}
{%- set split = 2 + contract.columns | length -%}
with versions as (
  select {{ columns_of(columns) }} from {{ past }}
  union all
  select {{ columns_of(columns[:split]) }}, cast(null as string), {{ columns_of(columns[split + 1:]) }} from {{ current }}
)

select {{ columns_of(columns[:split + 1]) }}, {{ time_of('valid_from_seq') }} as valid_from, {{ time_of('valid_to_seq') }} as valid_to,
       {{ columns_of(columns[split + 1:]) }}
from versions
{%- endif -%}
{%- endmacro %}
