{# Where each source of a batch must be read from, so that no transaction's moves at a key are cut apart.

   What puts a row at a key and what takes one away there are judged together within a transaction (see `timeline`). A
   reading that begins between them goes back to where the transaction begins: where a row is taken from a key to which
   its transaction has moved another (a new DELETE knows it by the conflict of the row), and where a late change comes
   upon a row that was moved here. Repeated until nothing is cut apart; mostly there is nothing.

   In: rewind, source -> change_seq; places [source, ..., change_seq] that close many keys; is there a wipe.
   Out: rewind, moved back where needed. -#}
{% macro survey_moves(name, log, found, rewind, places, has_wipe) -%}
  {%- set rewind = rewind.copy() -%}
  {%- set contract, cut, is_local = contract(name), namespace(is_found=true), is_local(name, true, found) -%}
  {%- set same_key -%}
v.source = e.source {%- for k in contract.key %} and v._key_{{ loop.index }} = e._key_{{ loop.index }}{% endfor %}
  {%- endset -%}
  {%- set our = ours(contract) -%}
  {%- set moved -%}
{{ unprefixed(our, ['source']) }},
{%- for k in contract.key %} {{ identifier(k) }} as _key_{{ loop.index }},{% endfor %}
{{ unprefixed(our, ['valid_from_seq', 'transaction_id', 'transaction_event_counter', 'transaction_last_event']) }}
  {%- endset -%}
  {%- for round in range(50) if cut.is_found -%}
    {%- set starts, start_of = [], {} -%}
    {%- for row in found -%}
      {%- do start_of.update({row.source: rewind.get(row.source, row.first_seq)}) -%}
      {%- do starts.append([row.source, row.applied_batch_id, row.applied_seq or '', start_of[row.source]]) -%}
    {%- endfor -%}
    {%- set columns = {
      'source': 'string', 'applied_batch_id': 'bigint', 'applied_seq': 'string', 'start_seq': 'string'
    } -%}
    {%- set closing_columns = {'source': 'string', 'change_seq': 'string', 'start_seq': 'string'} -%}
    {%- set closing = [] -%}
    {%- for place in places -%}
      {%- do closing.append([place[0], place[-1], start_of[place[0]]]) -%}
    {%- endfor -%}
    {%- set first_seq = start_of.values() | min -%}
    {%- set query -%}
with entries as (
  select l.source, l.change_seq, l.operation, l.transaction_id, l.transaction_event_counter, l.transaction_last_event,
         l.before, l.after, p.start_seq,
         l.batch_id > p.applied_batch_id and l.change_seq <= p.applied_seq as is_late, l.key_changed,
         l.key_changed or l.operation = 'DELETE' and l.batch_id <= p.applied_batch_id as is_take
  from {{ log }} l
  join ({{ literals('starts', columns, starts, is_local) }}) p on p.source = l.source and l.change_seq >= p.start_seq
  where l.change_seq >= '{{ first_seq }}'
),

touching as (
  select *
         {%- for k in contract.key %},
         coalesce(before.{{ identifier(k) }}, after.{{ identifier(k) }}) as _key_{{ loop.index }}
         {%- endfor %}
  from entries where is_late or is_take
  union all
  select * {%- for k in contract.key %}, after.{{ identifier(k) }}{% endfor %}
  from entries where is_late and key_changed
),

moved as (
  select {{ moved }}, {{ unprefixed(our, ['valid_to_seq']) }} from {{ target.schema }}.{{ name }}__past
  where ({{ our.key_changed }} or {{ our.conflict }} in {{ onto_row() }})
    and {{ our.valid_to_seq }} >= '{{ first_seq }}' and {{ our.valid_from_seq }} < '{{ start_of.values() | max }}'
  union all
  select {{ moved }}, null from {{ target.schema }}.{{ name }}__current
  where {{ our.key_changed }} or {{ our.conflict }} in {{ onto_row() }}
),

cuts as (
  select e.source, v.valid_from_seq as start_seq, v.transaction_id
  from touching e join moved v
    on {{ same_key }} and v.valid_from_seq < e.start_seq and coalesce(v.valid_to_seq, '~') >= e.change_seq
       and (e.is_late or {{ same_transaction('v.{}', 'e.{}') }})
  {%- if has_wipe or closing %}
  union all       -- what closes many keys, late
  select e.source, v.valid_from_seq, v.transaction_id
  from (
    select source, change_seq, start_seq from entries where is_late and operation in ('TRUNCATE', 'EMPTY_LOAD')
    {%- if closing %}
    union all
    {{ literals('closing', closing_columns, closing, is_local) }}
    {%- endif %}
  ) e
  join moved v on v.source = e.source
    and v.valid_from_seq < e.start_seq and coalesce(v.valid_to_seq, '~') >= e.change_seq
  {%- endif %}
)

select source, start_seq, transaction_id
from (select *, row_number() over (partition by source order by start_seq) as place from cuts)
where place = 1
    {%- endset -%}
    {%- set cuts = rows_of_gold(name, query, is_local) -%}
    {%- if cuts -%}
      {%- set cut_columns = {'source': 'string', 'start_seq': 'string', 'transaction_id': 'string'} -%}
      {%- set query -%}
with cut as (
  {{ literals('cut', cut_columns, rows_of(cuts, cut_columns.keys() | list), is_local) }}
),

other as (        -- the last change before it of another transaction: what stands between is of the same one
  select c.source, max(l.change_seq) as change_seq
  from cut c
  join {{ log }} l on l.source = c.source and l.change_seq < c.start_seq
    and l.transaction_id is distinct from c.transaction_id
  group by c.source
)

select c.source, coalesce(min(l.change_seq), c.start_seq) as start_seq
from cut c left join other o on o.source = c.source
left join {{ log }} l on l.source = c.source and l.transaction_id = c.transaction_id and l.change_seq < c.start_seq
                               and l.change_seq > coalesce(o.change_seq, '')
group by c.source, c.start_seq
      {%- endset -%}
      {%- for row in rows_of_gold(name, query, is_local) -%}
        {%- do rewind.update({row.source: row.start_seq}) -%}
      {%- endfor -%}
    {%- endif -%}
    {%- set cut.is_found = cuts != [] -%}
  {%- endfor -%}
  {%- if cut.is_found -%}
    {{ exceptions.raise_compiler_error('key changes of ' ~ name ~ ' are cut apart in more places than are looked at; '
                                       ~ 'run `inlet rebuild --table ' ~ name ~ '`') }}
  {%- endif -%}
  {{ return(rewind) }}
{%- endmacro %}
