{# The declared columns of a model as a query without rows, which dbt compares with what its SQL gives: dbt's own does
   not quote names. -#}
{% macro spark__get_empty_schema_sql(columns) -%}
select
  {% for column in columns.values() -%}
  cast(null as {{ column.data_type }}) as {{ identifier(column.name) }}{{ ', ' if not loop.last }}
  {%- endfor %}
{%- endmacro %}
