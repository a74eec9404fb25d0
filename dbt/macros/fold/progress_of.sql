{# Per source of a batch: where it stands and where it is read from. In literals, or, of many sources, from what
   `survey` kept. -#}
{% macro progress_of(batch) -%}
{%- if batch.progress and not batch.is_local -%}
select * from {{ batch.progress }}
{%- else -%}
{%- set columns = {'source': 'string', 'applied_batch_id': 'bigint', 'applied_seq': 'string', 'start_seq': 'string',
                   'rewind_seq': 'string', 'through_batch_id': 'bigint', 'through_seq': 'string'} -%}
{{ literals('progress', columns, rows_of(batch.sources, columns.keys()), batch.is_local) }}
{%- endif -%}
{%- endmacro %}
