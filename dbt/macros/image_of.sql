{# A typed image under gold's names. Binary that travels as hex is decoded; a bad digit stops the run. In: struct of members. -#}
{% macro image_of(typed, columns) -%}
{%- if columns | selectattr('encoding', 'equalto', 'hex') | list -%}
if({{ typed }} is null, null, named_struct({% for c in columns -%}
  '{{ c.name }}', {% if c.encoding == 'hex' %}to_binary({{ typed }}.`{{ c.member }}`, 'hex'){% else %}{{ typed }}.`{{ c.member }}`{% endif %}{{ ', ' if not loop.last }}
  {%- endfor %}))
{%- else -%}
cast({{ typed }} as struct<{% for c in columns %}`{{ c.name }}`: {{ c.type }}{{ ', ' if not loop.last }}{% endfor %}>)
{%- endif -%}
{%- endmacro %}
