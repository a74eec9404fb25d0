{# Columns that the after-image leaves open: not sent, or sent as `missing` (the source could not convert the value). -#}
{% macro not_supplied(columns) -%}
if(has_row, array_compact(array({% for c in columns %}
    case when {{ is_absent('a', 'after', c) }} or column_states['{{ c.member }}'] = 'missing' then {{ said(c) }} end{{ ',' if not loop.last }}{% endfor %})), cast(array() as array<string>))
{%- endmacro %}
