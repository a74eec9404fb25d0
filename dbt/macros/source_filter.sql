{# A filter on source in literals. Delta makes a chain of comparisons of an `in` list to prune files, and the JVM needs
   minutes to compile one of hundreds; a long list is therefore asked of an expression, which Delta does not prune
   by. #}
{% macro source_filter(sources) -%}
  {%- if sources | length > 20 -%} concat(source, '') in ({{ quoted(sources) }})
  {%- else -%} source in ({{ quoted(sources) }})
  {%- endif -%}
{%- endmacro %}
