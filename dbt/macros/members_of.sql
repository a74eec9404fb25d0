{# An image's members, typed by one cast of the whole VARIANT (1.35 times as fast as one variant_get per column). -#}
{% macro members_of(image, columns) -%}
cast({{ image }} as struct<
{%- for c in columns -%}
  {{ identifier(c.member) }}: {{ 'string' if c.encoding == 'hex' else c.type }}{{ ', ' if not loop.last }}
{%- endfor %}>)
{%- endmacro %}
