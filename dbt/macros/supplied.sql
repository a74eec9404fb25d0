{# Columns that an image supplies: an array of names. What was sent as `missing` (the source could not convert the
   value) or as `lob_incomplete` (the value is in segments) is not supplied. In: the typed image too. Of a wide table
   the image's members are asked for as a whole: a question a column would make its plan grow beyond planning; of any
   other a question a column is quicker, for the VARIANT is only asked where the typed value is null. -#}
{% macro supplied(typed, image, columns) -%}
{%- set missing = "map_keys(map_filter(column_states, (member, state) -> state in ('missing', 'lob_incomplete')))" -%}
{%- if columns | length > 100 -%}
transform(array_except(coalesce(map_keys(cast({{ image }} as map<string,variant>)), array()),
                       coalesce({{ missing }}, array())),
          member -> {{ name_of_member(columns) }})
{%- else -%}
{%- set sent -%}
array_compact(array({% for c in columns if c.name %}
    if({{ is_absent(typed, image, c) }}, null, {{ gold_name_literal(c) }}){{ ',' if not loop.last }}{% endfor %}))
{%- endset -%}
if(column_states is null, {{ sent }},
   array_except({{ sent }},
     transform({{ missing }}, member -> {{ name_of_member(columns) }})))
{%- endif -%}
{%- endmacro %}


{# Columns of a change that have got a value which the source could not send: an array of gold's names. In: is it
   asked of DataFusion, which has no lambdas. -#}
{% macro lost(contract, is_local) -%}
{%- if contract.versions | length == 1 -%}
{{ lost_of(contract.versions[0].columns, is_local) }}
{%- else -%}
case table_version{% for version in contract.versions %}
       when {{ version.version }} then {{ lost_of(version.columns, is_local) }}{% endfor %} end
{%- endif -%}
{%- endmacro %}


{% macro lost_of(columns, is_local) -%}
{%- if is_local -%}
array_compact(make_array({% for c in columns if c.name %}
         case when column_states[{{ text_literal(c.member) }}] = 'missing' then {{ gold_name_literal(c) }} end
         {{- ',' if not loop.last }}{% endfor %}))
{%- else -%}
transform(map_keys(map_filter(column_states, (member, state) -> state = 'missing')),
          member -> {{ name_of_member(columns) }})
{%- endif -%}
{%- endmacro %}


{# Gold's name of the column that a `member` of an image belongs to. -#}
{% macro name_of_member(columns) -%}
{%- set others = [] -%}
{%- for c in columns if c.name != c.member | lower or not c.member.isascii() %}{% do others.append(c) %}{% endfor -%}
{%- if not others -%} lower(member)
{%- else -%} map({% for c in columns -%}
  {{ text_literal(c.member) }}, {{ gold_name_literal(c) }}{{ ', ' if not loop.last }}
{%- endfor %})[member]
{%- endif -%}
{%- endmacro %}


{# Names of the columns that gold has, in order. -#}
{% macro names_of(columns) -%}
{%- set named = columns | selectattr('name') | map(attribute='name') | list -%}
array({{ quoted(named) }})
{%- endmacro %}
