{# How far gold has come. Appended to as the last step of a batch, so a row here is gold's commit; the greatest
   counts. dbt calls this before commands that only read, too: these write nothing. -#}
{% macro create_applied() %}
{%- if target.name == 'inlet'
      or target.type != 'databricks' and invocation_args_dict.which in ('build', 'run', 'retry') %}
create table if not exists gold.applied (
  table_name string comment 'table, as in orders__current',
  source string comment 'the ordered feed',
  through_batch_id bigint comment 'silver batches up to this one are in gold',
  through_change_seq string comment 'greatest change_seq in gold; a change at or before it that comes later is late',
  applied_at timestamp comment 'when'
) using delta
tblproperties (delta.enableDeletionVectors = false)  -- so that delta-rs can read it: `inlet status` needs no Spark
{%- endif %}
{% endmacro %}
