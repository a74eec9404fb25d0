{# The rows of a query, as dicts: a row as `run_query` gives it makes one of itself at every look at a field. -#}
{% macro query_rows(query) -%}
  {%- set rows = [] -%}
  {%- for row in run_query(query) %}{% do rows.append(row.dict()) %}{% endfor -%}
  {{ return(rows) }}
{%- endmacro %}
