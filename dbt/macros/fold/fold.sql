{# The semantics: changes become versions. tests/reference.py says the same in plain Python, and tests prove it.

   Every change is an entry in the timeline of each key it touches: `base` (the version that is live before), `set`
   (INSERT, REFRESH), `update`, `arrives` and `leaves` (a key change), `gone` (DELETE, or a wipe: TRUNCATE, empty load, start
   of a load that does not send the key again). Any entry closes the version before it; all but `leaves` and `gone` open one.

   A thread is one row followed through its key changes. It begins where no value can be carried over; along it, every
   column holds the value supplied last. Parts that a batch does not ask for (see `survey`) are left out of the query. -#}
{% macro fold(name, batch) %}
{%- set contract = contract(name) -%}
{%- set key = contract.key -%}
{%- set columns = contract.columns | map(attribute='name') | list -%}
{%- set keys -%}{% for k in key %}_key_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %}{%- endset -%}
{%- set key_columns -%}{% for k in key %}`{{ k }}` as _key_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %}{%- endset -%}
{%- set image -%}named_struct({% for c in columns %}'{{ c }}', `{{ c }}`{{ ', ' if not loop.last }}{% endfor %}){%- endset -%}
{%- set lineage = lineage() | join(', ') -%}
{%- set log = ref(name ~ '__before_after') -%}
{%- set past = target.schema ~ '.' ~ name ~ '__past' -%}
{%- set current = target.schema ~ '.' ~ name ~ '__current' -%}
with {{ 'recursive ' if batch.has_chain and batch.has_partial }}progress as (
  {{ literals('progress', {'source': 'string', 'applied_batch_id': 'bigint', 'applied_seq': 'string', 'start_seq': 'string',
                           'rewind_seq': 'string', 'through_batch_id': 'bigint', 'through_seq': 'string'},
              rows_of(batch.sources, ['source', 'applied_batch_id', 'applied_seq', 'start_seq', 'rewind_seq', 'through_batch_id', 'through_seq'])) }}
),

log as (
  {%- if batch.has_rewind %}
  select l.*, applied_batch_id, applied_seq, rewind_seq
  from {{ log }} l join progress on progress.source = l.source and l.change_seq >= start_seq
  where l.change_seq >= '{{ batch.start_seq }}'
  {%- else %}
  select * from {{ log }} where {{ batch.filter }}
  {%- endif %}
),

entries_of_changes as (
  select source, if(operation = 'DELETE', before, after) as at_image, if(operation = 'DELETE', after, before) as other_image,
         case when operation = 'DELETE' then 'gone' when key_changed then 'arrives' when operation = 'UPDATE' then 'update' else 'set' end as kind,
         change_seq, after as image, not_supplied, cast(null as string) as conflict, load_id, {{ lineage }}
         {{- ', applied_batch_id, applied_seq, rewind_seq, key_changed' if batch.has_rewind }}
  from log where operation not in ('TRUNCATE', 'EMPTY_LOAD')
  {%- if batch.has_key_change %}
  union all
  select source, before, after, 'leaves',
         change_seq, null, array(), null, null, {{ lineage }}
         {{- ', applied_batch_id, applied_seq, rewind_seq, key_changed' if batch.has_rewind }}
  from log where key_changed
  {%- endif %}
),

keyed as (
  select source, {{ key_of(key, 'at_image', 'other_image') }}, * except (source, at_image, other_image)
  from entries_of_changes
),
{%- if batch.has_wipe %}

{% if batch.has_rewind -%}
starts as (
  select source, load_id, min(change_seq) as change_seq from {{ log }} where load_id is not null group by source, load_id
),
{%- elif batch.starts -%}
starts as (
  {{ literals('starts', {'source': 'string', 'load_id': 'string', 'change_seq': 'string'}, batch.starts) }}
),
{%- endif %}

wipes as (
  select source, change_seq, cast(null as string) as load_id from log where operation in ('TRUNCATE', 'EMPTY_LOAD')
  {%- if batch.has_rewind %}
  union all
  select s.source, s.change_seq, s.load_id from starts s join progress p on p.source = s.source and s.change_seq >= start_seq
  {%- elif batch.starts %}
  union all
  select source, change_seq, load_id from starts
  {%- endif %}
),

sent_again as (
  select distinct source, load_id, {{ keys }} from keyed where load_id is not null
),
{%- endif %}
{%- if batch.has_rewind %}

disturbed as (
  select source, change_seq from log where operation in ('TRUNCATE', 'EMPTY_LOAD') and batch_id > applied_batch_id and change_seq <= applied_seq
  {%- if batch.disturbed %}
  union all
  {{ literals('places', {'source': 'string', 'change_seq': 'string'}, batch.disturbed) }}
  {%- endif %}
),

known as (
  select source, {{ key_columns }}, valid_from_seq, valid_to_seq, {{ image }} as image, not_supplied, conflict, {{ lineage }}
  from {{ past }} where valid_to_seq >= '{{ batch.rewind_seq }}'
  union all
  select source, {{ key_columns }}, valid_from_seq, null, {{ image }}, not_supplied, conflict, {{ lineage }}
  from {{ current }}
),

rewound as (   -- keys of late changes, of key changes after them, and keys live where a wipe comes late
  select source, {{ keys }} from keyed
  where rewind_seq is not null and (key_changed or batch_id > applied_batch_id and change_seq <= applied_seq)
  union
  select known.source, {{ keys }} from known join disturbed on disturbed.source = known.source
   and valid_from_seq < disturbed.change_seq and (valid_to_seq is null or valid_to_seq >= disturbed.change_seq)
  {%- if batch.continued %}
  union      -- keys that an earlier batch closed because the load had not sent them yet
  select keyed.source, {% for k in key %}keyed._key_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %} from keyed
  join ({{ literals('continued', {'source': 'string', 'load_id': 'string', 'change_seq': 'string'}, batch.continued) }}) continued
    on continued.source = keyed.source and continued.load_id = keyed.load_id
  join known on known.source = keyed.source and known.valid_to_seq = continued.change_seq {%- for k in key %} and known._key_{{ loop.index }} = keyed._key_{{ loop.index }}{% endfor %}
  where keyed.batch_id > applied_batch_id
  {%- endif %}
),
{%- endif %}

changes as (
  select k.source, {% for k in key %}k._key_{{ loop.index }}, {% endfor %}kind, change_seq, image, not_supplied, conflict, {{ lineage }}
  from keyed k
  {%- if batch.has_rewind %}
  left join rewound r on r.source = k.source {%- for k in key %} and r._key_{{ loop.index }} = k._key_{{ loop.index }}{% endfor %}
  where r.source is not null or applied_seq is null or change_seq > applied_seq
  {%- endif %}
),

touched as (
  select source, {{ keys }}, false as is_rewound from changes
  {%- if batch.has_wipe %}
  union
  select source, {{ key_columns }}, false from {{ current }}
  left semi join (select w.source from wipes w join progress p on p.source = w.source where applied_seq is null or w.change_seq > applied_seq) w using (source)
  {%- endif %}
),
{%- if batch.has_rewind %}

touched_or_rewound as (
  select source, {{ keys }}, max(is_rewound) as is_rewound
  from (select * from touched union all select source, {{ keys }}, true from rewound) group by source, {{ keys }}
),
{%- endif %}
{%- set touched = 'touched_or_rewound' if batch.has_rewind else 'touched' %}

base as (
  select c.source, {% for k in key %}c._key_{{ loop.index }}, {% endfor %}valid_from_seq as change_seq, image, not_supplied, conflict, {{ lineage }}, false as is_rewound
  from (select source, {{ key_columns }}, valid_from_seq, {{ image }} as image, not_supplied, conflict, {{ lineage }} from {{ current }}) c
  left semi join {{ touched }} t on t.source = c.source {%- for k in key %} and t._key_{{ loop.index }} = c._key_{{ loop.index }}{% endfor %}{{ ' and not t.is_rewound' if batch.has_rewind }}
  {%- if batch.has_rewind %}
  union all
  select h.source, {% for k in key %}h._key_{{ loop.index }}, {% endfor %}valid_from_seq, image, not_supplied, conflict, {{ lineage }}, true
  from known h join progress p on p.source = h.source and valid_from_seq < rewind_seq and (valid_to_seq is null or valid_to_seq >= rewind_seq)
  left semi join rewound r on r.source = h.source {%- for k in key %} and r._key_{{ loop.index }} = h._key_{{ loop.index }}{% endfor %}
  {%- endif %}
),

timeline as (
  select source, {{ keys }}, kind, change_seq, 1 as place, image, not_supplied, conflict, {{ lineage }}, false as is_rewound from changes
  union all
  select source, {{ keys }}, 'base', change_seq, 1, image, not_supplied, conflict, {{ lineage }}, is_rewound from base
  {%- if batch.has_wipe %}
  union all    -- before a row at the same place
  select t.source, {% for k in key %}t._key_{{ loop.index }}, {% endfor %}'gone', w.change_seq, 0, null, array(), null, null, null, null, null, null, null, false
  from (select distinct * from {{ touched }}) t join wipes w on w.source = t.source
  join progress p on p.source = t.source and (applied_seq is null or w.change_seq > applied_seq {{- ' or t.is_rewound and w.change_seq >= rewind_seq' if batch.has_rewind }})
  left anti join sent_again s on s.source = t.source and s.load_id = w.load_id {%- for k in key %} and s._key_{{ loop.index }} = t._key_{{ loop.index }}{% endfor %}
  {%- endif %}
),

ordered as (
  select *,
         lag(kind) over per_key as previous_kind,
         lead(change_seq) over per_key as next_seq,
         max(case when kind not in ('gone', 'leaves') then change_seq end) over (partition by source, {{ keys }}) as last_opened_seq
  from timeline
  window per_key as (partition by source, {{ keys }} order by change_seq, place)
),

placed as (
  select *, previous_kind is null or previous_kind in ('gone', 'leaves') as is_row_absent from ordered
),
{%- if batch.has_key_change %}

opened as (
  select *,
         last_value(case when kind in ('set', 'base', 'arrives') or kind = 'update' and is_row_absent then change_seq end, true)
           over (partition by source, {{ keys }} order by change_seq, place rows between unbounded preceding and current row) as opened_seq
  from placed
),

moves as (     -- key changes of rows that were there: the stretch of the row's thread that ends, and the one that goes on
  select source, change_seq, opened_seq as left_seq from opened where kind = 'leaves' and not is_row_absent
),
{%- if batch.has_chain and batch.has_partial %}

threads(source, opened_seq, thread_seq) as (
  select m.source, m.change_seq, m.left_seq
  from moves m left anti join moves e on e.source = m.source and e.change_seq = m.left_seq
  union all
  select m.source, m.change_seq, t.thread_seq
  from threads t join moves m on m.source = t.source and m.left_seq = t.opened_seq
),
{%- else %}

threads as (
  select source, change_seq as opened_seq, left_seq as thread_seq from moves
),
{%- endif %}

traced as (
  select o.*, coalesce(t.thread_seq, o.opened_seq) as thread_seq,
         kind in ('set', 'base') or kind = 'update' and is_row_absent or kind = 'arrives' and t.thread_seq is null as is_start
  from opened o left join threads t on t.source = o.source and t.opened_seq = o.opened_seq
  where kind not in ('gone', 'leaves')
),
{%- else %}

traced as (
  select *, kind in ('gone', 'set', 'base') or is_row_absent as is_start from placed
),
{%- endif %}

judged as (
  select * except (conflict),
         case when kind = 'base' then conflict
              when kind = 'set' and operation = 'INSERT' and not is_row_absent then 'insert_over_row'
              when kind = 'update' and is_row_absent or kind = 'arrives' and is_start then 'update_without_row'
              when kind = 'arrives' and not is_row_absent then 'key_change_onto_row' end as conflict
  from traced
),
{%- if batch.has_partial %}

carried as (   -- per column the value supplied last along the thread; a start supplies `never supplied` as well
  select *,
    {%- for c in columns %}
         last_value(case when is_start or not array_contains(not_supplied, '{{ c }}')
                         then named_struct('value', image.`{{ c }}`, 'is_absent', array_contains(not_supplied, '{{ c }}')) end, true) over thread as _column_{{ loop.index }}{{ ',' if not loop.last }}
    {%- endfor %}
  from judged
  {%- if batch.has_key_change %}
  window thread as (partition by source, thread_seq order by change_seq rows between unbounded preceding and current row)
  {%- else %}
  window thread as (partition by source, {{ keys }} order by change_seq, place rows between unbounded preceding and current row)
  {%- endif %}
),

versions as (
  select source, kind as _kind, {% for c in columns %}_column_{{ loop.index }}.value as `{{ c }}`, {% endfor %}
         change_seq as valid_from_seq, next_seq as valid_to_seq,
         array_compact(array({% for c in columns %}case when _column_{{ loop.index }}.is_absent then '{{ c }}' end{{ ', ' if not loop.last }}{% endfor %})) as not_supplied,
         conflict, {{ lineage }}, change_seq = last_opened_seq as _is_last, is_rewound as _is_rewound
  from carried
)
{%- else %}

versions as (
  select source, kind as _kind, {% for c in columns %}image.`{{ c }}` as `{{ c }}`, {% endfor %}
         change_seq as valid_from_seq, next_seq as valid_to_seq, not_supplied,
         conflict, {{ lineage }}, change_seq = last_opened_seq as _is_last, is_rewound as _is_rewound
  from judged
)
{%- endif %}

select source, {{ columns_of(columns) }}, valid_from_seq, valid_to_seq,
       size(not_supplied) = 0 as is_complete, not_supplied, conflict, {{ lineage }}, _is_last,
       cast(null as bigint) as _through_batch_id, cast(null as string) as _through_change_seq
from versions
where _kind not in ('gone', 'leaves') and (_kind <> 'base' or valid_to_seq is not null or _is_rewound)
union all     -- how far gold comes with this batch
select source, {% for c in contract.columns %}cast(null as {{ c.type }}), {% endfor %}null, null,
       null, null, null, null, null, null, null, null, null, null,
       through_batch_id, through_seq
from progress
{% endmacro %}
