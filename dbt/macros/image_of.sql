{# A typed image under gold's names and types. Binary that travels as hex is decoded; a bad digit stops the run. In:
   struct of members, a version's columns, gold's. -#}
{% macro image_of(typed, columns, gold_columns) -%}
{%- set then = {} -%}
{%- for c in columns if c.name %}{% do then.update({c.name: c}) %}{% endfor -%}
{%- if columns | map(attribute='name') | list == gold_columns | map(attribute='name') | list
      and columns | map(attribute='encoding') | select('equalto', 'hex') | list == [] -%}
cast({{ typed }} as struct<
  {%- for c in gold_columns %}{{ identifier(c.name) }}: {{ c.type }}{{ ', ' if not loop.last }}{% endfor %}>)
{%- else -%}
if({{ typed }} is null, null, named_struct({% for c in gold_columns -%}
  {{ text_literal(c.name) }}, {% if c.name not in then -%} cast(null as {{ c.type }})
  {%- else -%}
    {%- set value = typed ~ '.' ~ identifier(then[c.name].member) -%}
    {%- if then[c.name].encoding == 'hex' -%} to_binary({{ value }}, 'hex')
    {%- elif then[c.name].type == c.type -%} {{ value }}
    {%- else -%} cast({{ value }} as {{ c.type }})
    {%- endif -%}
  {%- endif -%}
  {{ ', ' if not loop.last }}
  {%- endfor %}))
{%- endif -%}
{%- endmacro %}
