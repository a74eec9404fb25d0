{# The time in a change_seq (YYYYMMDDHHmmSShh, UTC); null where a source's digits are no calendar time. -#}
{% macro time_of(seq) -%}
try_to_timestamp(substr({{ seq }}, 1, 14) || '.' || substr({{ seq }}, 15, 2) || '+0000', 'yyyyMMddHHmmss.SSZ')
{%- endmacro %}
