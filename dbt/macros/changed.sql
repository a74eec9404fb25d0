{# Columns that changed by the source's own mask: an array of names. `mask` is hex, two digits a byte, low byte first:
   ordinal n is bit (n-1) % 4 of one digit. -#}
{% macro changed_by_mask(columns) -%}
{%- set digits = ['13579BDF', '2367ABEF', '4567CDEF', '89ABCDEF'] -%}
array_compact(array({% for c in columns %}
    {%- set n, name = loop.index0, gold_name_literal(c) -%}
    {%- set digit = 'substr(mask, %d, 1)' % (2 * (n // 8) + (1 if n % 8 > 3 else 2)) %}
    case when instr('{{ digits[n % 4] }}', {{ digit }}) > 0 then {{ name }} end{{ ',' if not loop.last }}
    {%- endfor %}))
{%- endmacro %}


{# Columns in which the typed images differ, supplied or not: an array of names. -#}
{% macro unlike(columns) -%}
array_compact(array({% for c in columns %}
    {%- set b, a, name = comparable('b', c), comparable('a', c), gold_name_literal(c) %}
    case when {{ b }} is distinct from {{ a }} then {{ name }} end{{ ',' if not loop.last }}
    {%- endfor %}))
{%- endmacro %}


{# A member of a typed image as it is compared with another: hex digits mean the same in either case. -#}
{% macro comparable(typed, column) -%}
{{ ('lower(%s)' if column.encoding == 'hex' else '%s') % (typed ~ '.' ~ identifier(column.member)) }}
{%- endmacro %}
