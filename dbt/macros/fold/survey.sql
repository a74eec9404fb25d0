{# What the new changes of a table ask for. One aggregate, and one more each where loads or key changes are among them.

   Out: none where nothing is new, else
     log          where they are; is_first: as if current and past were empty, where a log is given (see `verify`)
     filter       the new rows of the log, in literals
     sources      one per source with new rows: source, through_batch_id, through_seq, applied_batch_id, applied_seq,
                  rewind_seq: the earliest place that a late change can alter (none: all in order)
     progress     the table that keeps them, where they are many
     starts       loads that start in what is read and have ended: [source, load_id, change_seq]
     disturbed    places before which every live key is folded again, but for those that the load sends:
                  [source, load_id, change_seq]
     continued    loads that started in an earlier batch and closed keys there: [source, load_id, change_seq]
     key_range    a filter in literals that holds for every touched key; `true` where the new changes do not tell
     is_small     are its rows written without Spark; is_local: is it folded without Spark, too (see `stage`)
     has_rewind, has_partial, has_lost (some columns came as `missing`), has_key_change,
     has_delete (within transactions), has_wipe, has_added (a dropped column is added again: it wipes the column) #}
{% macro survey(name, lagging, log=none) -%}
  {%- set is_first, log, filter = log is not none, log or ref(name ~ '__before_after'), batch_filter(lagging) -%}
  {%- set small = gold_state().small.get(name) -%}
  {%- set new = small and not is_first and adapter.small_batches.new_changes(name) or log -%}
  {%- if small and small.is_whole and not is_first and adapter.small_batches.has_new(name) -%}
    {%- set found = adapter.small_batches.survey(name, lagging) -%}
  {%- else -%}
    {%- set found = query_rows(new_changes_by_source(name, new, filter, lagging)) -%}
  {%- endif -%}
  {%- if not found %}{{ return(none) }}{% endif -%}
  {%- set kinds, late, is_local = kinds_of(found), {}, is_local(name, true, found) -%}
  {%- for row in found if row.late_seq %}{% do late.update({row.source: row.late_seq}) %}{% endfor -%}
  {%- set moved = survey_moves(name, log, found, late, [], kinds.has_wipe) if kinds.has_key_change or late else late -%}
  {%- set has_loads = kinds.has_load or moved -%}
  {%- set loads = survey_loads(name, log, found, moved)
            if has_loads else {'ended': [], 'disturbed': [], 'continued': [], 'rewind': moved} -%}
  {%- set closing = loads.disturbed + loads.continued -%}
  {%- set is_moved_again = loads.rewind != moved or closing -%}
  {%- set rewind = survey_moves(name, log, found, loads.rewind, closing, kinds.has_wipe)
            if is_moved_again else loads.rewind -%}
  {%- set starts, sources = starts_of(found, loads.ended, rewind), sources_of(found, rewind) -%}
  {%- set progress = keep(name, false, 'progress', progress_of({'sources': sources}))
                     if sources | length > 50 and not is_local else none -%}
  {%- set start_seq = sources | map(attribute='start_seq') | min -%}
  {%- set of_sources = {'sources': sources, 'progress': progress, 'is_local': is_local} -%}
  {%- set read = kinds_of(rows_of_gold(name, kinds_since(log, of_sources, start_seq), is_local))
            if rewind else kinds -%}
  {%- set has_wipe = read.has_wipe or starts != [] -%}
  {{ return({
    'log': log if rewind else new, 'is_first': is_first, 'filter': filter,
    'num_changes': found | sum(attribute='num_changes') | int,
    'sources': sources, 'progress': progress,
    'starts': starts, 'disturbed': loads.disturbed, 'continued': loads.continued,
    'has_rewind': rewind != {}, 'rewind_seq': rewind.values() | min if rewind else none, 'start_seq': start_seq,
    'has_partial': read.has_partial, 'has_lost': read.has_lost, 'has_key_change': read.has_key_change,
    'has_delete': read.has_delete, 'has_wipe': has_wipe, 'has_added': read.has_added,
    'key_range': 'true' if rewind or has_wipe or small and small.is_whole else key_range(name, found[0]),
    'is_small': false, 'is_local': false,
  }) }}
{%- endmacro %}


{# One row per source with new changes: how far they come, which come late, what kinds are among them, the range of
   their keys. Of a small batch `adapter.small_batches.survey` gives the same, but for the keys. -#}
{% macro new_changes_by_source(name, log, filter, lagging) -%}
with applied as (
  {{ literals('applied', {'source': 'string', 'applied_seq': 'string', 'applied_batch_id': 'bigint'},
    rows_of(lagging, ['source', 'applied_change_seq', 'applied_batch_id'])) }}
)

select l.source, max(applied_batch_id) as applied_batch_id, max(applied_seq) as applied_seq,
       max(batch_id) as through_batch_id, max(change_seq) as through_seq, min(change_seq) as first_seq,
       min(case when change_seq <= applied_seq then change_seq end) as late_seq, count(*) as num_changes,
       {{ kinds_of_changes() }},
       cast(bool_or(load_id is not null) as int) as has_load
       {%- for k in ranged_keys(name) %},
       cast(min(min(least(before.{{ identifier(k.name) }}, after.{{ identifier(k.name) }}))) over ()
         as string) as first_{{ loop.index }},
       cast(max(max(greatest(before.{{ identifier(k.name) }}, after.{{ identifier(k.name) }}))) over ()
         as string) as last_{{ loop.index }}
       {%- endfor %}
from (select * from {{ log }} where {{ filter }}) l join applied on applied.source = l.source
group by l.source order by l.source
{%- endmacro %}


{# One row: the kinds of changes in all that is read again, where a batch rewinds. -#}
{% macro kinds_since(log, batch, start_seq) -%}
select {{ kinds_of_changes() }}
from {{ log }} l join ({{ progress_of(batch) }}) p on p.source = l.source and l.change_seq >= p.start_seq
where l.change_seq >= '{{ start_seq }}'
{%- endmacro %}


{# Aggregates: which kinds of changes there are, as 0 and 1. -#}
{% macro kinds_of_changes() -%}
cast(bool_or(cardinality(not_supplied) > 0) as int) as has_partial,
       cast(bool_or(array_contains(map_values(column_states), 'missing')) as int) as has_lost,
       cast(bool_or(key_changed) as int) as has_key_change,
       cast(bool_or(operation = 'DELETE' and transaction_id is not null) as int) as has_delete,
       cast(bool_or(operation in ('TRUNCATE', 'EMPTY_LOAD', 'COLUMN_ADDED')) as int) as has_wipe,
       cast(bool_or(operation = 'COLUMN_ADDED') as int) as has_added
{%- endmacro %}


{# {flag: does any row have it}. -#}
{% macro kinds_of(rows) -%}
  {%- set found = {} -%}
  {%- set all = ['has_partial', 'has_lost', 'has_key_change', 'has_delete', 'has_wipe', 'has_added', 'has_load'] -%}
  {%- for flag in all if flag in rows[0] -%}
    {%- do found.update({flag: rows | selectattr(flag) | list | length > 0}) -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}


{# Loads that start in what is read: [source, load_id, change_seq]. One that begins a source has nothing to close. -#}
{% macro starts_of(found, loads, rewind) -%}
  {%- set starts, first = [], {} -%}
  {%- for row in found %}{% do first.update({row.source: row}) %}{% endfor -%}
  {%- for load in loads -%}
    {%- set row = first[load.source] -%}
    {%- set begins_source = not row.applied_seq and load.start_seq == row.first_seq -%}
    {%- if not begins_source and load.start_seq >= (rewind.get(row.source) or row.first_seq) -%}
      {%- do starts.append([load.source, load.load_id, load.start_seq]) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(starts) }}
{%- endmacro %}


{# One dict per source: where it stands, and where it is read from. -#}
{% macro sources_of(found, rewind) -%}
  {%- set sources = [] -%}
  {%- for row in found -%}
    {%- do sources.append({
      'source': row.source, 'applied_batch_id': row.applied_batch_id | int, 'applied_seq': row.applied_seq,
      'through_batch_id': row.through_batch_id | int, 'through_seq': [row.through_seq, row.applied_seq or ''] | max,
      'rewind_seq': rewind.get(row.source), 'start_seq': rewind.get(row.source) or row.first_seq}) -%}
  {%- endfor -%}
  {{ return(sources) }}
{%- endmacro %}
