{# Gold's name of a column as a text; null of one that gold does not have. -#}
{% macro gold_name_literal(column) -%}
{{ text_literal(column.name) if column.name else 'cast(null as string)' }}
{%- endmacro %}
