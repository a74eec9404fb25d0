{# A filter on source in literals. Delta makes a chain of comparisons of an `in` list to prune files, and the JVM needs minutes to
   compile one of hundreds; a long list is therefore an array, which prunes nothing. #}
{% macro source_filter(sources) -%}
  {%- if sources | length > 20 -%} array_contains(array({{ quoted(sources) }}), source)
  {%- else -%} source in ({{ quoted(sources) }})
  {%- endif -%}
{%- endmacro %}
