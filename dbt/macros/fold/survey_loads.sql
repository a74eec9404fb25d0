{# Where the full loads of a table start, and what those of a batch disturb. Adds to `batch` and to `rewind` (source -> change_seq).
   Out: every load: source, load_id, start_seq.

   A load that starts here, in order, is a wipe of what it does not send again. One that starts before what is applied, or
   whose start moves back, disturbs every key that was live there. One that goes on from an earlier batch disturbs only
   keys that its start has closed and that it now sends after all. -#}
{% macro survey_loads(name, batch, found, rewind) -%}
  {%- set log = batch.log -%}
  {%- set query -%}
with applied as (
  {{ literals('applied', {'source': 'string', 'applied_batch_id': 'bigint'}, rows_of(found, ['source', 'applied_batch_id'])) }}
),

loads as (
  select l.source, load_id, min(change_seq) as start_seq,
         min(case when batch_id <= applied_batch_id then change_seq end) as start_before_seq,
         cast(bool_or(batch_id > applied_batch_id) as int) as is_new
  from {{ log }} l join applied on applied.source = l.source
  where load_id is not null
  group by l.source, load_id
)

select source, load_id, start_seq, start_before_seq, is_new from loads order by source, load_id
  {%- endset -%}
  {%- set of = {} -%}
  {%- for row in found %}{% do of.update({row.source: row}) %}{% endfor -%}
  {%- set loads = run_query(query) | list -%}
  {%- set continued = [] -%}
  {%- for load in loads if load.is_new -%}
    {%- if load.start_before_seq and load.start_before_seq == load.start_seq -%}
      {%- do continued.append([load.source, load.load_id, load.start_seq]) -%}
    {%- elif load.start_before_seq or load.start_seq <= (of[load.source].applied_seq or '') -%}
      {%- for place in [load.start_seq, load.start_before_seq] if place -%}
        {%- do batch.disturbed.append([load.source, place]) -%}
        {%- do rewind.update({load.source: [rewind.get(load.source, place), place] | min}) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if continued and name ~ '__past' in gold_tables(name) -%}
    {%- set query -%}
select distinct source, valid_to_seq from {{ target.schema }}.{{ name }}__past
where valid_to_seq in ({{ quoted(continued | map('last') | unique) }})
    {%- endset -%}
    {%- set closing = [] -%}
    {%- for row in run_query(query) %}{% do closing.append([row.source, row.valid_to_seq]) %}{% endfor -%}
    {%- for source, load_id, place in continued if [source, place] in closing -%}
      {%- do batch.continued.append([source, load_id, place]) -%}
      {%- do rewind.update({source: [rewind.get(source, place), place] | min}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(loads) }}
{%- endmacro %}
