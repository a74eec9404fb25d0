{# The database of a model: what its `schema` says, as it stands, where dbt's own would say gold_marts; else that of
   the profile, gold. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
  {{ custom_schema_name or target.schema }}
{%- endmacro %}
