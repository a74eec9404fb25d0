with after_gold as (   -- is_moved: gold has gone on since, or is being rebuilt, and this view soon with it
  select b.source, b.batch_id, a.applied_seq, coalesce(a.is_moved, false)
    or {{ through }} >= 0 and (select count(*) from gold.applied where table_name = {{ table_name }}) = 0 as is_moved
  from silver.batches b
  left join (
    select source, max(case when through_batch_id <= {{ through }} then through_change_seq end) as applied_seq,
      min(through_batch_id) > {{ through }} as is_moved
    from gold.applied where table_name = {{ table_name }} group by source
  ) a on a.source = b.source
  where b.batch_id > {{ through }} and arrays_overlap(b.tables, array({{ tables }}))
),

pending as (   -- one row per change, empty load or end of a load that gold has not taken
  select c.source, c.change_seq, operation, {{ transaction("") }} as transaction, applied_seq, is_moved,
    {{ before }} as b,
    {{ after }} as a,
    {{ lost }} as lost
  from {{ changes }} c join after_gold g on g.source = c.source and g.batch_id = c.batch_id
  where c.batch_id > {{ through }} and concat(source_schema, '.', source_table) in ({{ tables }})
  union all
  select e.source, e.change_seq, upper(kind), {{ no_transaction }}, applied_seq, is_moved, {{ no_image }}, {{ no_image }},
    cast(array() as array<string>)
  from silver.control_events e join after_gold g on g.source = e.source and g.batch_id = e.batch_id
  where e.batch_id > {{ through }} and concat(source_schema, '.', source_table) in ({{ tables }})
    and kind in ('empty_load', 'load_end') and e.change_seq is not null
),

keyed as (   -- b_0, a_0: the first key column before and after; where one image lacks it, the other's
  select *,
    {%- for key in keys %}
    coalesce({{ typed("b", key.column) }}, {{ typed("a", key.column) }}) as b_{{ loop.index0 }},
    coalesce({{ typed("a", key.column) }}, {{ typed("b", key.column) }}) as a_{{ loop.index0 }}
    {{- "," if not loop.last }}
    {%- endfor %}
  from pending
),

entries as (   -- hold: gold alone can tell what comes of this change
  select *,
    {%- for key in keys %}
    if(operation = 'DELETE', b_{{ loop.index0 }}, a_{{ loop.index0 }}) as {{ key.name }},
    {%- endfor %}
    case
      when is_moved or change_seq <= applied_seq then ''
      when operation = 'LOAD_END' then change_seq
      {%- for place in added_again %}
      when change_seq >= '{{ place }}' and coalesce(applied_seq, '') < '{{ place }}' then change_seq
      {%- endfor %}
      when operation in {{ updates }} and (
        {%- for key in keys %}{{ " or " if not loop.first }}b_{{ loop.index0 }} <> a_{{ loop.index0 }}{% endfor %})
        then change_seq
    end as hold
  from keyed
),

placed as (
  select *, max(case when operation in {{ wipes }} and change_seq < coalesce(hold_seq, '~') then change_seq end)
    over (partition by source) as wiped_seq
  from (select *, min(hold) over (partition by source) as hold_seq from entries)
),

sources as (
  select source, max(hold_seq) as hold_seq, max(wiped_seq) as wiped_seq from placed group by source
),

changed as (   -- one row per key: its changes in order
  select source, {{ key_list }}, max(hold_seq) as hold_seq, max(wiped_seq) as wiped_seq,
    array_sort(collect_list(struct(change_seq, operation, transaction, a as image, lost)), (one, two) -> case
      when one.change_seq < two.change_seq then -1 when one.change_seq > two.change_seq then 1 else 0 end) as changes
  from placed
  where operation not in {{ wipes }}
    and change_seq < coalesce(hold_seq, '~') and change_seq >= coalesce(wiped_seq, '')
  group by source, {{ key_list }}
),

current as (
  select *{% for key in keys %}, {{ quoted(key.column) }} as {{ key.name }}{% endfor %}
  from (select row.* from {{ base }} where through_batch_id is null)
),

based as (   -- one row per changed key: gold's row, and the changes that follow it
  select f.source, f.changes, f.hold_seq, c.{{ our("source") }} is not null and f.wiped_seq is null as is_there,
    c.{{ our("valid_from_seq") }} as seq, c.{{ our("conflict") }} as conflict, {{ transaction("c.") }} as transaction,
    c.{{ our("not_supplied") }} as unknown, cast(to_variant_object(struct({{ as_sent }})) as map<string,variant>) as whole
  from changed f
  left join (
    select k.* from current k left semi join changed g on g.source = k.{{ our("source") }}{{ same_key("g", "k") }}
  ) c on c.{{ our("source") }} = f.source{{ same_key("c", "f") }}
),

{#- 'onto': the transaction that has just put a row onto the one that was there; its DELETE takes that one away.
    'unknown': columns that were never supplied, and those that were missing since and have the value of before #}
{%- macro row(is_there, seq, onto, image, unknown) -%}
named_struct('is_there', {{ is_there }}, 'seq', {{ seq }}, 'onto', {{ onto }}, 'image', {{ image }},
        'unknown', {{ unknown }})
{%- endmacro %}

folded as (   -- one row per changed key: what its changes make of it
  select source, hold_seq, map_keys(whole) as names, aggregate(changes,
    {{ row("is_there", "seq", "if(is_there and conflict in " ~ onto_row ~ ", transaction, null)",
           "if(is_there, whole, " ~ no_image ~ ")", "if(is_there, unknown, map_keys(whole))") }},
    (row, change) -> case
      when change.operation = 'DELETE' and {{ same_transaction("row.onto", "change.transaction") }} is true
        then {{ row("true", "row.seq", no_transaction, "row.image", "row.unknown") }}
      when change.operation = 'DELETE'
        then {{ row("false", "change.change_seq", no_transaction, no_image, "map_keys(whole)") }}
      when change.operation in {{ updates }}
        then {{ row("true", "change.change_seq", no_transaction,
                    "map_zip_with(row.image, change.image, (name, was, is) -> coalesce(is, was))",
                    "array_union(array_except(row.unknown, map_keys(change.image)), change.lost)") }}
      else {{ row("true", "change.change_seq",
                  "if(row.is_there and change.operation = 'INSERT', change.transaction, null)", "change.image",
                  "array_except(map_keys(whole), map_keys(change.image))") }}
    end) as row
  from based
),

unpacked as (
  select source, hold_seq, row.seq, array_intersect(names, row.unknown) as not_supplied, {{ as_row }} as is
  from folded where row.is_there
)

select c.* except ({{ own_columns }}, {{ key_list }}),
  false as {{ our("is_pending") }}, s.hold_seq is not null as {{ our("is_held") }}
from current c
left anti join changed f on f.source = c.{{ our("source") }}{{ same_key("f", "c") }}
left join sources s on s.source = c.{{ our("source") }}
where s.wiped_seq is null
union all
select source, {{ columns }}, seq, size(not_supplied) = 0, not_supplied, true, hold_seq is not null
from unpacked
