{# Was this column not supplied in an image? The VARIANT is only asked where the typed value is null. A path cannot say
   every name, a key of a map can. -#}
{% macro is_absent(typed, image, column) -%}
{%- set is_plain_name = modules.re.fullmatch('[A-Za-z_][A-Za-z0-9_]*', column.member) -%}
({{ typed }}.{{ identifier(column.member) }} is null and {% if is_plain_name -%}
variant_get({{ image }}, '$.{{ column.member }}', 'variant') is null
{%- else -%}
map_contains_key(cast({{ image }} as map<string,variant>), {{ text_literal(column.member) }}) is not true
{%- endif %})
{%- endmacro %}
