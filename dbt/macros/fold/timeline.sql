{# The timeline of every key that a batch touches: one row per entry, with what stands before and after it.

   `base` is the version that is live where the key's new entries begin. A wipe becomes `gone` for each touched key; the
   start of a load is a wipe of the keys that the load does not send. A wipe of columns, which are added again, becomes
   `emptied` for each touched key; where no row is there it means nothing. An INSERT or key change that puts a row onto
   another which its transaction takes away next (an UPDATE swaps or renumbers keys) displaces it: the one that is taken
   is the one that was there.

   Which entries follow each other within a transaction at one key (`paired`; only where key changes or DELETEs are
   among them):

   | this entry                        | the next one, same transaction | it is then                                  |
   |-----------------------------------|--------------------------------|---------------------------------------------|
   | puts a row (INSERT, arrives, base | takes one (DELETE, leaves)     | `is_displacing` where a row was there: it   |
   | with a conflict of `onto_row`)    |                                | stays, and ends where the one after the     |
   |                                   |                                | next begins                                 |
   | takes a row                       | (the one before puts one)      | `is_displaced` where a row was there: it    |
   |                                   |                                | takes the earlier row, and closes nothing   |
   | any other                         | any                            | on its own: the key has a row after it      |
   |                                   |                                | unless it is `gone` or `leaves`; `emptied`  |
   |                                   |                                | leaves what is there                        |
-#}
{% macro timeline(name, batch, entries, touched) -%}
{%- set key = contract(name).key -%}
{%- set no_lineage = (['null'] * (lineage() | length)) | join(', ') -%}
{%- set lineage = lineage() | join(', ') -%}
{%- set is_emptied = "w.operation = 'COLUMN_ADDED'" -%}
{%- set has_pairs = batch.has_key_change or batch.has_delete -%}
{%- set start_types = {'source': 'string', 'change_seq': 'string', 'load_id': 'string'} -%}
{%- set in_order = 'partition by source, ' ~ keys(key) ~ ' order by change_seq, place' -%}
with entries as (
  {{ entries }}
),

touched as (
  {{ touched }}
),
{%- if batch.has_wipe %}

wipes as (
  select source, change_seq, cast(null as string) as load_id
         {{- ', operation, not_supplied, batch_id' if batch.has_added }} from entries where kind = 'wipe'
  {%- if batch.starts %}
  union all
  {{ 'select *, null, array(), null from (' if batch.has_added }}
  {{- literals('starts', start_types, rows_of(batch.starts, [0, 2, 1]), batch.is_local) }}{{ ')' if batch.has_added }}
  {%- endif %}
),

sent as (
  select distinct source, load_id, {{ keys(key) }} from entries where load_id is not null and kind <> 'wipe'
),
{%- endif %}

changes as (
  select e.* from entries e
  {%- if batch.has_rewind %}
  join touched t on {{ same_key(key, 't', 'e') }}
    and (t.rewind_seq is not null or e.change_seq > coalesce(t.applied_seq, ''))
  {%- endif %}
  where kind <> 'wipe'
),

base as (
  select {{ broadcast(batch, 't') }} k.*, false as is_rewound
  from ({{ versions_of(name, batch, 'current', batch.key_range) }}) k
  left semi join touched t on {{ same_key(key, 't', 'k') }} {{- ' and t.rewind_seq is null' if batch.has_rewind }}
  {%- if batch.has_rewind %}
  union all
  select k.*, true from (
    {{ rewound_versions_of(name, batch) }}
    union all
    {{ versions_of(name, batch, 'current') }}
  ) k left semi join touched t on {{ same_key(key, 't', 'k') }}
    and k.valid_from_seq < t.rewind_seq and coalesce(k.valid_to_seq, '~') >= t.rewind_seq
  {%- endif %}
),

timeline as (
  select source, {{ keys(key) }}, kind, change_seq, 1 as place, image, not_supplied, {{ 'lost, ' if batch.has_lost -}}
         cast(null as string) as conflict,
         {{ lineage }}, false as is_rewound
  from changes
  union all
  select source, {{ keys(key) }}, 'base', valid_from_seq, 1, image, not_supplied, {{ 'null, ' if batch.has_lost -}}
         conflict,
         {{ lineage }}, is_rewound
  from base
  {%- if batch.has_wipe %}
  union all       -- before a row at the same place
  select t.source, {{ keys(key, 't.') }},
  {%- if batch.has_added %}
         if({{ is_emptied }}, 'emptied', 'gone'), w.change_seq, if({{ is_emptied }}, -1, 0), null, w.not_supplied,
         {{ 'array(), ' if batch.has_lost }}null,
         {%- for column in lineage.split(', ') %}
         {{ 'if(%s, w.%s, null)' % (is_emptied, column) if column in ('operation', 'batch_id')
            else 'if(%s, false, null)' % is_emptied if column == 'key_changed' else 'null' }},
         {%- endfor %} false
  {%- else %} 'gone', w.change_seq, 0, null, {{ array_of(batch) }}(), {{ 'null, ' if batch.has_lost }}null,
         {{ no_lineage }}, false
  {%- endif %}
  from touched t
  join wipes w on w.source = t.source
    and (w.change_seq > coalesce(t.applied_seq, '') or w.change_seq >= t.rewind_seq)
  left anti join sent s on {{ same_key(key, 's', 't') }} and s.load_id = w.load_id
  {%- endif %}
),

{%- if has_pairs %}

marked as (
  select *,
         kind = 'arrives' or kind = 'set' and operation = 'INSERT'
           or (kind = 'base' and conflict in {{ onto_row() }}) is true as is_put,
         kind = 'leaves' or (kind = 'gone' and operation = 'DELETE') is true as is_take
  from timeline
),

paired as (   -- an entry that puts a row at its key, and after it one of the same transaction that takes one away
  select *,
         is_put and (lead(is_take) over per_key
           and {{ same_transaction('{}', 'lead({}) over per_key') }}) is true as is_followed,
         is_take and (lag(is_put) over per_key
           and {{ same_transaction('lag({}) over per_key', '{}') }}) is true as is_following
  from marked
  window per_key as ({{ in_order }})
),
{%- endif %}

ordered as (
  select *,
         {%- if has_pairs %}
         last_value(case when (kind = 'base' or not is_followed and not is_following)
                           {{- " and kind <> 'emptied'" if batch.has_added }} then kind end)
           ignore nulls over ({{ in_order }} rows between unbounded preceding and 1 preceding) as previous_kind,
         lead(change_seq, 2) over per_key as next_but_one_seq,
         {%- elif batch.has_added %}
         last_value(case when kind <> 'emptied' then kind end)
           ignore nulls over ({{ in_order }} rows between unbounded preceding and 1 preceding) as previous_kind,
         {%- else %}
         lag(kind) over per_key as previous_kind,
         {%- endif %}
         lead(change_seq) over per_key as next_seq, 
         {%- if batch.has_added %}
         bool_or(kind not in ('gone', 'leaves', 'emptied'))
           over (partition by source, {{ keys(key) }}, change_seq) as is_opened_here,
         {%- endif %}
         max(case when kind not in ('gone', 'leaves') then change_seq end)
           over (partition by source, {{ keys(key) }}) as last_opened_seq
  from {{ 'paired' if has_pairs else 'timeline' }}
  window per_key as ({{ in_order }})
),

judged as (
  select *, previous_kind is null or previous_kind in ('gone', 'leaves') as is_row_absent from ordered
)
{%- if batch.has_added -%}
, opened as (   -- of two entries at one place the later one alone opens a version
  select * except (last_opened_seq),
         max(case when kind not in ('gone', 'leaves', 'emptied')
                    or kind = 'emptied' and not is_row_absent and next_seq is distinct from change_seq
                    then change_seq end) over (partition by source, {{ keys(key) }}) as last_opened_seq
  from judged
)
{%- endif %}
{%- set judged = 'opened' if batch.has_added else 'judged' %}

{% if has_pairs -%}
, settled as (   -- opened_seq: since which change the key has held its row
  select * except (next_seq, is_row_absent, is_put, is_take),
         is_row_absent and not is_following as is_row_absent,
         is_followed and (kind = 'base' or not is_row_absent) as is_displacing,
         is_following and not is_row_absent as is_displaced,
         case when is_followed and (kind = 'base' or not is_row_absent) then next_but_one_seq
              else next_seq end as next_seq
         {%- if batch.has_key_change %},
         last_value(
           case
             {%- if contract(name).get('added_again') %}     -- all rows have a version of that change_seq
             when kind = 'base' and operation = 'COLUMN_ADDED'
               then concat(change_seq, to_json(struct({{ keys(key) }})))
             {%- endif %}
             when kind in ('set', 'base', 'arrives') or kind = 'update' and is_row_absent then change_seq end)
           ignore nulls over ({{ in_order }} rows between unbounded preceding and current row) as opened_seq
         {%- endif %}
  from {{ judged }}
)

{% if batch.has_key_change -%}
select * except (opened_seq, is_displaced),
       case when is_displaced then lag(opened_seq, 2) over ({{ in_order }}) else opened_seq end as opened_seq
from settled
{%- else -%}
select * from settled where kind <> 'gone' or not is_displaced
{%- endif %}
{%- else -%}
select *, false as is_displacing from {{ judged }}
{%- endif %}
{%- endmacro %}
