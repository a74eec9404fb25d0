{# Comma-separated text literals. -#}
{% macro quoted(texts) -%}
  {% for text in texts %}'{{ text }}'{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro %}
