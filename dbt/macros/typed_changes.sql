{# Silver's changes of one table, typed: one row per change. An empty full load and the end of a load are rows too, because they say
   something about every row of the table. In: rows of `progress`; a log whose batches are left out (none: every batch up to where they come). -#}
{% macro typed_changes(name, behind, log=none) -%}
{%- set changes, control_events = source('silver', 'changes'), source('silver', 'control_events') -%}
{%- set contract = contract(name) -%}
{%- set schema, table = contract.table.split('.') -%}
{%- set columns = contract.columns -%}
with {% if log -%}
logged as (
  select distinct source, batch_id from {{ log }} where {{ batch_filter(behind) }}
),

{% endif -%}
changes as (
  select c.*, {{ members_of('before', columns) }} as b, {{ members_of('after', columns) }} as a,
         operation in ('INSERT', 'REFRESH', 'UPDATE') as has_row,
         rpad(hex(change_mask), {{ 2 * ((columns | length + 7) // 8) }}, '0') as mask
  from {{ changes }} c{{ ' left anti join logged l on l.source = c.source and l.batch_id = c.batch_id' if log }}
  where source_schema = '{{ schema }}' and source_table = '{{ table }}' and {{ batch_filter(behind, true) }}
),

typed as (
  select *,
         if(change_mask is not null, {{ changed_by_mask(columns) }}, null) as masked,
         if(has_row and before is not null, {{ compared(columns, 'is distinct from') }}, null) as differing,
         if(change_mask is not null and operation = 'UPDATE' and before is not null, {{ compared(columns, 'is not distinct from') }}, null) as equal,
         {{ not_supplied(columns) }} as not_supplied,
         operation = 'UPDATE' and ({% for k in contract.key %}b.`{{ k }}` <> a.`{{ k }}`{{ ' or ' if not loop.last }}{% endfor %}) is true as key_changed
  from changes
),

load_events as (
  select e.* from {{ control_events }} e{{ ' left anti join logged l on l.source = e.source and l.batch_id = e.batch_id' if log }}
  where kind in ('empty_load', 'load_end') and change_seq is not null
    and source_schema = '{{ schema }}' and source_table = '{{ table }}' and {{ batch_filter(behind, true) }}
)

select source, change_seq, operation, change_oper,
       {{ image_of('b', columns) }} as before, {{ image_of('a', columns) }} as after,
       coalesce(masked, differing, array()) as changed,
       if(equal is null, array(), array_union(array_except(differing, masked), array_intersect(masked, equal))) as mask_conflicts,
       not_supplied, key_changed,
       transaction_id, transaction_event_counter, transaction_last_event, change_timestamp, load_id, table_version,
       column_states, unit_id, unit_offset, batch_id
from typed
union all
select source, change_seq, upper(kind), upper(substr(kind, 1, 1)), null, null, array(), array(), array(), false,
       null, null, null, null, load_id, null,
       null, unit_id, unit_offset, batch_id
from load_events
{%- endmacro %}
