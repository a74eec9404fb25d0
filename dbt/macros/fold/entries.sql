{# Changes as entries in the timelines of the keys they touch: one row per change and key, a wipe has no key of its own.

   Kinds: `set` (INSERT, REFRESH), `update` (UPDATE, UPSERT), `arrives` and `leaves` (a key change touches two keys),
   `gone` (DELETE), `wipe` (TRUNCATE, empty load; a dropped column that is added again wipes that column). A rewound
   source is read again from where it was rewound to, any other where it is new. -#}
{% macro entries(name, batch) -%}
{%- set key = contract(name).key -%}
{%- set kind -%}
case when operation = 'DELETE' then 'gone' when operation in ('UPDATE', 'UPSERT') then 'update'
                 when operation in ('TRUNCATE', 'EMPTY_LOAD', 'COLUMN_ADDED') then 'wipe' else 'set' end
{%- endset -%}
with log as (
  {%- if batch.has_rewind %}
  select l.*, l.batch_id > p.applied_batch_id as is_new, p.applied_seq, p.rewind_seq
  from {{ batch.log }} l join ({{ progress_of(batch) }}) p on p.source = l.source and l.change_seq >= p.start_seq
  where l.change_seq >= '{{ batch.start_seq }}' and operation <> 'LOAD_END'
  {%- else %}
  select *, true as is_new, cast(null as string) as applied_seq, cast(null as string) as rewind_seq
  from {{ batch.log }} where {{ batch.filter }} and operation <> 'LOAD_END'
  {%- endif %}
),

kinds as (
  {%- if batch.has_key_change %}
  select *, {{ 'unnest' if batch.is_local else 'explode' }}(
              case when key_changed then {{ array_of(batch) }}('leaves', 'arrives')
                   else {{ array_of(batch) }}({{ kind }}) end) as kind
  from log
  {%- else %}
  select *, {{ kind }} as kind from log
  {%- endif %}
)

select source, kind, change_seq,
       {%- for k in key %}
       case when kind in ('gone', 'leaves') then coalesce(before.{{ identifier(k) }}, after.{{ identifier(k) }})
            else coalesce(after.{{ identifier(k) }}, before.{{ identifier(k) }}) end as _key_{{ loop.index }},
       {%- endfor %}
       after as image, not_supplied, {{ lost(contract(name), batch.is_local) ~ ' as lost, ' if batch.has_lost -}}
       load_id, is_new, applied_seq, rewind_seq, {{ lineage() | join(', ') }}
from kinds
{%- endmacro %}
