{# Columns that changed: by the source's own mask, else by comparing what both images supply.
   `mask` is hex, two digits a byte, low byte first: ordinal n is bit (n-1) % 4 of one digit. -#}
{% macro changed(columns) -%}
{%- set digits = ['13579BDF', '2367ABEF', '4567CDEF', '89ABCDEF'] -%}
case when change_mask is not null then array_compact(array({% for c in columns %}
    {%- set n = loop.index0 %}
    case when instr('{{ digits[n % 4] }}', substr(mask, {{ 2 * (n // 8) + (1 if n % 8 > 3 else 2) }}, 1)) > 0 then '{{ c.name }}' end{{ ',' if not loop.last }}{% endfor %}))
  when has_row and before is not null then array_compact(array({% for c in columns %}
    case when b.`{{ c.member }}` is distinct from a.`{{ c.member }}` and not {{ is_absent('b', 'before', c) }}
          and not {{ is_absent('a', 'after', c) }} and column_states['{{ c.member }}'] is distinct from 'missing' then '{{ c.name }}' end{{ ',' if not loop.last }}{% endfor %}))
  else cast(array() as array<string>) end
{%- endmacro %}
