{# The table that holds the batch at hand: its versions, and rows that say how far it comes. -#}
{% macro create_staging(name, table) -%}
  {% call statement('create_staging') %}
create table if not exists {{ target.schema }}.{{ name }}__{{ table }} (
  source string, {% for c in contract(name).columns %}`{{ c.name }}` {{ c.type }}, {% endfor %}valid_from_seq string, valid_to_seq string,
  is_complete boolean, not_supplied array<string>, conflict string,
  operation string, key_changed boolean, change_timestamp timestamp, transaction_id string, transaction_event_counter bigint, transaction_last_event boolean, unit_id string, unit_offset bigint, batch_id bigint,
  _is_last boolean comment 'the last version of its key: the one to keep in current, or the key to drop from it',
  _through_batch_id bigint comment 'set in the rows that say how far the batch comes', _through_change_seq string
) using delta tblproperties (delta.dataSkippingStatsColumns = 'valid_to_seq,_through_batch_id')
  {% endcall %}
{%- endmacro %}
