{# Columns of a version that tell which change opened it. -#}
{% macro lineage() -%}
  {{ return(['operation', 'key_changed', 'change_timestamp', 'transaction_id',
           'transaction_event_counter', 'transaction_last_event', 'unit_id', 'unit_offset', 'batch_id']) }}
{%- endmacro %}
