{# Every version: past and current. Periods are half-open; the times come from the first 16 digits of the change_seq.
   The table's own columns are not named: Hive's catalog takes 32,700 characters a view, and a table may have a thousand
   columns. -#}
{% macro history(name) -%}
{%- set past, current = ref(name ~ '__past'), ref(name ~ '__current') -%}
{%- if execute -%}
{%- set our, trailing = ours(contract(name)), [] -%}
{%- for column in ['is_complete', 'not_supplied', 'conflict'] + lineage() -%}
  {%- do trailing.append(our[column]) -%}
{%- endfor -%}
with versions as (
  select * except ({{ our.valid_to_seq }}), {{ our.valid_to_seq }} from {{ past }}
  union all
  select *, cast(null as string) from {{ current }}
)

select * except ({{ our.valid_to_seq }}, {{ trailing | join(', ') }}), {{ our.valid_to_seq }},
       {{ time_of(our.valid_from_seq) }} as {{ our.valid_from }}, {{ time_of(our.valid_to_seq) }} as {{ our.valid_to }},
       {{ trailing | join(', ') }}
from versions
{%- endif -%}
{%- endmacro %}
