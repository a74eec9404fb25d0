{# The contract of a table as the generator wrote it: tables (every name it went by), key, gold's columns
   {name, type}, and versions {version, columns: {name in gold or none, member, type, encoding}}. -#}
{% macro contract(name) -%}
  {{ return(graph.nodes['model.inlet.' ~ name ~ '__before_after'].config.meta) }}
{%- endmacro %}
