{# Fold a batch into `<t>__folded`: closed and open versions, and how far they come. From here on the batch is fixed: what
   follows only copies, so a run that dies is finished by the next one. #}
{% macro stage(name, batch) -%}
  {%- set contract = contract(name) -%}
  {%- if name ~ '__folded' not in gold_tables(name) -%}
    {% call statement('create_staging') %}
create table if not exists {{ target.schema }}.{{ name }}__folded (
  source string, {% for c in contract.columns %}`{{ c.name }}` {{ c.type }}, {% endfor %}valid_from_seq string, valid_to_seq string,
  is_complete boolean, not_supplied array<string>, conflict string,
  operation string, change_timestamp timestamp, transaction_id string, unit_id string, unit_offset bigint, batch_id bigint,
  _is_last boolean comment 'the last version of its key: the one to keep in current, or the key to drop from it',
  _through_batch_id bigint comment 'set in the rows that say how far the batch comes', _through_change_seq string
) using delta tblproperties (delta.dataSkippingStatsColumns = 'valid_to_seq,_through_batch_id')
    {% endcall %}
  {%- endif -%}
  {%- if batch.has_chain and batch.has_partial -%}
    {% do run_query('set spark.sql.cteRecursionLevelLimit = -1') %}{% do run_query('set spark.sql.cteRecursionRowLimit = -1') %}
  {%- endif -%}
  {% call statement('stage') %}
insert overwrite table {{ target.schema }}.{{ name }}__folded
{{ fold(name, batch) }}
  {% endcall %}
{%- endmacro %}
