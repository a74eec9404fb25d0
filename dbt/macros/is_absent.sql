{# Was this column not supplied in an image? The VARIANT is only asked where the typed value is null. -#}
{% macro is_absent(typed, image, column) -%}
({{ typed }}.`{{ column.member }}` is null and variant_get({{ image }}, '$.{{ column.member }}', 'variant') is null)
{%- endmacro %}
