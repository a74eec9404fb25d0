{# Comma-separated columns, quoted, each with an optional prefix: `s.order_id, s.amount`. -#}
{% macro columns_of(names, prefix='') -%}
  {%- for name in names %}{{ prefix }}{{ identifier(name) }}{{ ', ' if not loop.last }}{% endfor -%}
{%- endmacro %}
