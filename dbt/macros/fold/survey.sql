{# What the new changes of a table ask for. One aggregate, and one more each where loads or key changes are among them.

   Out: none where nothing is new, else
     log          where they are; is_first: as if current and past were empty, where a log is given (see `verify`)
     filter       the new rows of the log, in literals
     sources      one per source with new rows: source, through_batch_id, through_seq, applied_batch_id, applied_seq,
                  rewind_seq: the earliest place that a late change can alter (none: all in order)
     progress     the table that keeps them, where they are many
     starts       loads that start in what is read and have ended: [source, load_id, change_seq]
     disturbed    places before which every live key is folded again, but for those that the load sends: [source, load_id, change_seq]
     continued    loads that started in an earlier batch and closed keys there: [source, load_id, change_seq]
     key_range    a filter in literals that holds for every touched key; `true` where the new changes do not tell
     has_rewind, has_partial, has_key_change, has_delete (within transactions), has_wipe #}
{% macro survey(name, behind, log=none) -%}
  {%- set is_first, log = log is not none, log or ref(name ~ '__before_after') -%}
  {%- set filter = batch_filter(behind) -%}
  {%- set query -%}
with applied as (
  {{ literals('applied', {'source': 'string', 'applied_seq': 'string', 'applied_batch_id': 'bigint'}, rows_of(behind, ['source', 'applied_change_seq', 'applied_batch_id'])) }}
)

select l.source, max(applied_batch_id) as applied_batch_id, max(applied_seq) as applied_seq,
       max(batch_id) as through_batch_id, max(change_seq) as through_seq, min(change_seq) as first_seq,
       min(case when change_seq <= applied_seq then change_seq end) as late_seq, count(*) as num_changes,
       cast(bool_or(size(not_supplied) > 0) as int) as has_partial,
       cast(bool_or(key_changed) as int) as has_key_change,
       cast(bool_or(operation = 'DELETE' and transaction_id is not null) as int) as has_delete,
       cast(bool_or(operation in ('TRUNCATE', 'EMPTY_LOAD')) as int) as has_wipe,
       cast(bool_or(load_id is not null) as int) as has_load
       {%- for k in ranged_keys(name) %},
       cast(min(min(least(before.{{ identifier(k.name) }}, after.{{ identifier(k.name) }}))) over () as string) as first_{{ loop.index }},
       cast(max(max(greatest(before.{{ identifier(k.name) }}, after.{{ identifier(k.name) }}))) over () as string) as last_{{ loop.index }}
       {%- endfor %}
from (select * from {{ log }} where {{ filter }}) l join applied on applied.source = l.source
group by l.source order by l.source
  {%- endset -%}
  {%- set found = ask(query) -%}
  {%- if not found %}{{ return(none) }}{% endif -%}

  {%- set batch = {'log': log, 'is_first': is_first, 'filter': filter, 'sources': [], 'starts': [], 'disturbed': [], 'continued': []} -%}
  {%- for flag in ['has_partial', 'has_key_change', 'has_delete', 'has_wipe', 'has_load'] -%}
    {%- do batch.update({flag: found | selectattr(flag) | list | length > 0}) -%}
  {%- endfor -%}
  {%- do batch.update({'num_changes': found | sum(attribute='num_changes') | int}) -%}
  {%- set rewind = {} -%}
  {%- for row in found if row.late_seq %}{% do rewind.update({row.source: row.late_seq}) %}{% endfor -%}
  {%- if batch.has_key_change or rewind -%}{%- do survey_moves(name, batch, found, rewind) -%}{%- endif -%}
  {%- set rewind_before_loads = rewind.copy() -%}
  {%- set loads = survey_loads(name, batch, found, rewind) if batch.has_load or rewind else [] -%}
  {%- if rewind != rewind_before_loads or batch.disturbed or batch.continued -%}{%- do survey_moves(name, batch, found, rewind) -%}{%- endif -%}
  {%- set loads_of = {} -%}
  {%- for load in loads %}{% do loads_of.setdefault(load.source, []).append(load) %}{% endfor -%}
  {%- for row in found -%}
    {%- for load in loads_of.get(row.source, []) -%}
      {%- set is_first = not row.applied_seq and load.start_seq == row.first_seq -%}      {# nothing is live that it could close #}
      {%- if not is_first and load.start_seq >= (rewind.get(row.source) or row.first_seq) -%}
        {%- do batch.starts.append([load.source, load.load_id, load.start_seq]) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- do batch.sources.append({
      'source': row.source, 'applied_batch_id': row.applied_batch_id | int, 'applied_seq': row.applied_seq,
      'through_batch_id': row.through_batch_id | int, 'through_seq': [row.through_seq, row.applied_seq or ''] | max,
      'rewind_seq': rewind.get(row.source), 'start_seq': rewind.get(row.source) or row.first_seq}) -%}
  {%- endfor -%}
  {%- if batch.sources | length > 50 -%}{%- do batch.update({'progress': keep(name, 'progress', progress_of(batch))}) -%}{%- endif -%}
  {%- do batch.update({'has_rewind': rewind != {}, 'has_wipe': batch.has_wipe or batch.starts != []}) -%}
  {%- if rewind -%}
    {%- do batch.update({'rewind_seq': rewind.values() | min, 'start_seq': batch.sources | map(attribute='start_seq') | min}) -%}
    {%- set query -%}
select cast(bool_or(size(not_supplied) > 0) as int) as has_partial, cast(bool_or(key_changed) as int) as has_key_change,
       cast(bool_or(operation = 'DELETE' and transaction_id is not null) as int) as has_delete,
       cast(bool_or(operation in ('TRUNCATE', 'EMPTY_LOAD')) as int) as has_wipe
from {{ log }} l join ({{ progress_of(batch) }}) p on p.source = l.source and l.change_seq >= p.start_seq
where l.change_seq >= '{{ batch.start_seq }}'
    {%- endset -%}
    {%- set again = ask(query)[0] -%}
    {%- do batch.update({'has_partial': again.has_partial | int == 1, 'has_key_change': again.has_key_change | int == 1,
                         'has_delete': again.has_delete | int == 1, 'has_wipe': again.has_wipe | int == 1 or batch.starts != []}) -%}
  {%- endif -%}
  {%- do batch.update({'key_range': 'true' if batch.has_rewind or batch.has_wipe else key_range(name, found[0])}) -%}
  {{ return(batch) }}
{%- endmacro %}
