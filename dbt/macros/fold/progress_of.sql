{# Per source of a batch: where it stands and where it is read from. -#}
{% macro progress_of(batch) -%}
{%- set columns = {'source': 'string', 'applied_batch_id': 'bigint', 'applied_seq': 'string', 'start_seq': 'string',
                   'rewind_seq': 'string', 'through_batch_id': 'bigint', 'through_seq': 'string'} -%}
{{ literals('progress', columns, rows_of(batch.sources, columns.keys())) }}
{%- endmacro %}
