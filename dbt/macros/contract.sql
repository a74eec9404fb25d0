{# The contract of a table as the generator wrote it: table, key, and columns {name, member, type, encoding}. -#}
{% macro contract(name) -%}
  {{ return(graph.nodes['model.inlet.' ~ name ~ '__before_after'].config.meta) }}
{%- endmacro %}
