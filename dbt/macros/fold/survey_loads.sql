{# Where the full loads of a table start, and what those of a batch disturb. In: rewind, source -> change_seq.
   Out: ended: every load that has: source, load_id, start_seq; disturbed, continued: as in `survey`; rewind, moved to
   these.

   A load is a wipe, at its start, of what it does not send, once it has ended; until then it only brings rows. Where it
   starts and ends here, in order, nothing is disturbed. One that ends now and began earlier disturbs what was live at
   its start and what it has not sent; one that has ended and whose start moves back, every key that was live at the old
   or the new one. One that goes on after its end disturbs only keys that its start has closed and that it now sends
   after all. #}
{% macro survey_loads(name, log, found, rewind) -%}
  {%- set rewind, disturbed, closed_again = rewind.copy(), [], [] -%}
  {%- set is_local = is_local(name, true, found) -%}
  {%- set query -%}
with applied as (
  {{ literals('applied', {'source': 'string', 'applied_batch_id': 'bigint'},
    rows_of(found, ['source', 'applied_batch_id']), is_local) }}
),

loads as (
  select l.source, load_id,
         min(case when operation = 'REFRESH' then change_seq end) as start_seq,
         min(case when operation = 'REFRESH' and batch_id <= applied_batch_id then change_seq end) as start_before_seq,
         min(case when operation = 'LOAD_END' then batch_id - applied_batch_id end) as ended_after,
         cast(bool_or(batch_id > applied_batch_id) as int) as is_new
  from {{ log }} l join applied on applied.source = l.source
  where load_id is not null
  group by l.source, load_id
)

select source, load_id, start_seq, case when ended_after <= 0 then start_before_seq end as start_before_seq, is_new
from loads where start_seq is not null and ended_after is not null order by source, load_id
  {%- endset -%}
  {%- set of = {} -%}
  {%- for row in found %}{% do of.update({row.source: row}) %}{% endfor -%}
  {%- set loads = rows_of_gold(name, query, is_local) -%}
  {%- set continued, late = [], [] -%}
  {%- for load in loads if load.is_new -%}
    {%- if load.start_before_seq == load.start_seq -%}
      {%- do continued.append([load.source, load.load_id, load.start_seq]) -%}
    {%- elif load.start_before_seq -%}
      {%- do late.append([load.source, none, load.start_seq]) -%}
      {%- do late.append([load.source, none, load.start_before_seq]) -%}
    {%- elif load.start_seq <= (of[load.source].applied_seq or '') -%}
      {%- do late.append([load.source, load.load_id, load.start_seq]) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set first = {} -%}
  {%- if late -%}       {# nothing was live before the first change of all #}
    {%- set query = 'select source, min(change_seq) as change_seq from ' ~ log ~ ' where source in ('
                     ~ quoted(late | map('first') | unique) ~ ') group by source' -%}
    {%- for row in rows_of_gold(name, query, is_local) -%}
      {%- do first.update({row.source: row.change_seq}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- for source, load_id, place in late if not load_id or place > first[source] -%}
    {%- do disturbed.append([source, load_id, place]) -%}
    {%- do rewind.update({source: [rewind.get(source, place), place] | min}) -%}
  {%- endfor -%}
  {%- if continued and name ~ '__past' in gold_tables(name) -%}
    {%- set query -%}
select distinct source, valid_to_seq from {{ target.schema }}.{{ name }}__past
where valid_to_seq in ({{ quoted(continued | map('last') | unique) }})
    {%- endset -%}
    {%- set closing = {} -%}
    {%- for row in rows_of_gold(name, query, is_local) -%}
      {%- do closing.update({(row.source, row.valid_to_seq): true}) -%}
    {%- endfor -%}
    {%- for source, load_id, place in continued if (source, place) in closing -%}
      {%- do closed_again.append([source, load_id, place]) -%}
      {%- do rewind.update({source: [rewind.get(source, place), place] | min}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return({'ended': loads, 'disturbed': disturbed, 'continued': closed_again, 'rewind': rewind}) }}
{%- endmacro %}
