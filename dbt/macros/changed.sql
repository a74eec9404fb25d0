{# Columns that changed by the source's own mask: an array of names. `mask` is hex, two digits a byte, low byte first: ordinal n
   is bit (n-1) % 4 of one digit. -#}
{% macro changed_by_mask(columns) -%}
{%- set digits = ['13579BDF', '2367ABEF', '4567CDEF', '89ABCDEF'] -%}
array_compact(array({% for c in columns %}
    {%- set n = loop.index0 %}
    case when instr('{{ digits[n % 4] }}', substr(mask, {{ 2 * (n // 8) + (1 if n % 8 > 3 else 2) }}, 1)) > 0 then {{ said(c) }} end{{ ',' if not loop.last }}{% endfor %}))
{%- endmacro %}


{# Columns that both images supply and in which they differ, or are the same: an array of names. In: `is distinct from`, or with `not`. -#}
{% macro compared(columns, comparison) -%}
array_compact(array({% for c in columns %}
    {%- set values = 'lower(%s)' if c.encoding == 'hex' else '%s' %}
    case when {{ values % ('b.`' ~ c.member ~ '`') }} {{ comparison }} {{ values % ('a.`' ~ c.member ~ '`') }} and not {{ is_absent('b', 'before', c) }}
          and not {{ is_absent('a', 'after', c) }} and column_states['{{ c.member }}'] is distinct from 'missing' then {{ said(c) }} end{{ ',' if not loop.last }}{% endfor %}))
{%- endmacro %}
