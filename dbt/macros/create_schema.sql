{# Make a schema. Inlet has made gold's before it calls dbt: `if not exists` asks for the right to make one first. -#}
{% macro spark__create_schema(relation) -%}
  {%- if target.name != 'inlet' or relation.schema != target.schema -%}
    {% call statement('create_schema') %}create schema if not exists {{ relation }}{% endcall %}
  {%- endif -%}
{%- endmacro %}
