{# Keys that a batch touches: one row per source and key. `rewind_seq` is set where late changes make us fold the key
   again from there: more keys than needed would be right, one too few would not. -#}
{% macro touched(name, batch, entries) -%}
{%- set key = contract(name).key -%}
{%- if not batch.has_wipe and not batch.has_rewind -%}
select distinct source, {{ keys(key) }}, applied_seq, cast(null as string) as rewind_seq from ({{ entries }})
{%- else -%}
with entries as (
  {{ entries }}
),

progress as (
  {{ progress_of(batch) }}
),

disturbed as (    -- places where every live key is touched, but for those that the load sends: late ones rewind it
  select distinct source, cast(null as string) as load_id,
         case when change_seq > coalesce(applied_seq, '') then '~' else change_seq end as change_seq
  from entries where kind = 'wipe' and is_new
  {%- if batch.starts %}
  union
  select s.source, s.load_id, '~'
  from ({{ literals('starts', {'source': 'string', 'load_id': 'string', 'change_seq': 'string'}, batch.starts,
                     batch.is_local) }}) s
  join progress p on p.source = s.source and s.change_seq > coalesce(p.applied_seq, '')
  {%- endif %}
  {%- if batch.disturbed %}
  union
  {{ literals('places', {'source': 'string', 'load_id': 'string', 'change_seq': 'string'}, batch.disturbed,
              batch.is_local) }}
  {%- endif %}
),

sent as (
  select distinct source, load_id, {{ keys(key) }} from entries where load_id is not null and kind <> 'wipe'
),

known as (
  {{ versions_of(name, batch, 'current') }}
  {%- if batch.has_rewind %}
  union all
  {{ rewound_versions_of(name, batch) }}
  {%- endif %}
),

found as (
  select source, {{ keys(key) }},
         rewind_seq is not null and (key_changed or is_new and change_seq <= applied_seq) as is_rewound
  from entries
  where kind <> 'wipe' and (change_seq > coalesce(applied_seq, '') or key_changed or is_new)
  union all
  select k.source, {{ keys(key, 'k.') }}, d.change_seq <> '~' from known k
  join disturbed d on d.source = k.source and k.valid_from_seq < d.change_seq
    and coalesce(k.valid_to_seq, '~') >= d.change_seq
  left anti join sent s on {{ same_key(key, 's', 'k') }} and s.load_id = d.load_id
  {%- if batch.continued %}
  union all       -- keys that an earlier batch closed because their load had not sent them yet
  select e.source, {{ keys(key, 'e.') }}, true from entries e
  join ({{ literals('continued', {'source': 'string', 'load_id': 'string', 'change_seq': 'string'},
    batch.continued, batch.is_local) }}) c
    on c.source = e.source and c.load_id = e.load_id
  join known k on {{ same_key(key, 'k', 'e') }} and k.valid_to_seq = c.change_seq
  where e.is_new and kind <> 'wipe'
  {%- endif %}
)

select f.source, {{ keys(key, 'f.') }}, max(p.applied_seq) as applied_seq,
       max(case when is_rewound then p.rewind_seq end) as rewind_seq
from found f join progress p on p.source = f.source
group by f.source, {{ keys(key, 'f.') }}
{%- endif -%}
{%- endmacro %}
