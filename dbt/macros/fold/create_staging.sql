{# The table that holds the batch at hand: its versions, and rows that say how far it comes. -#}
{% macro create_staging(name, table) -%}
  {%- set contract = contract(name) -%}
  {%- set our = ours(contract) -%}
  {%- set columns -%}
  {{ our.source }} string,
  {% for c in contract.columns %}{{ identifier(c.name) }} {{ c.type }}, {% endfor %}
  {{ our.valid_from_seq }} string, {{ our.valid_to_seq }} string,
  {{ our.is_complete }} boolean, {{ our.not_supplied }} array<string>, {{ our.conflict }} string,
  {{ our.operation }} string, {{ our.key_changed }} boolean, {{ our.change_timestamp }} timestamp,
  {{ our.transaction_id }} string, {{ our.transaction_event_counter }} bigint, {{ our.transaction_last_event }} boolean,
  {{ our.unit_id }} string, {{ our.unit_offset }} bigint, {{ our.batch_id }} bigint,
  {{ our._is_last }} boolean
    comment 'the last version of its key: the one to keep in current, or the key to drop from it',
  {{ our._through_batch_id }} bigint comment 'set in the rows that say how far the batch comes',
  {{ our._through_change_seq }} string
  {%- endset -%}
  {%- set statistics = our.valid_to_seq ~ ',' ~ our._through_batch_id -%}
  {%- do create_table(name ~ '__' ~ table, columns, dict({'delta.enableDeletionVectors': 'false',
                      'delta.dataSkippingStatsColumns': statistics}, **name_properties(contract))) -%}
{%- endmacro %}
