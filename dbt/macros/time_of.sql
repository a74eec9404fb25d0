{# The time in a change_seq (YYYYMMDDHHmmSShh, UTC); null where a source's digits are no calendar time. -#}
{% macro time_of(seq) -%}
try_to_timestamp(substr({{ seq }}, 1, 16) || '+0000', 'yyyyMMddHHmmssSSZ')
{%- endmacro %}
