{# The typed log: what silver holds of one table in whole batches that the log does not hold yet.
   An empty full load is a row too, because it says something about every row of the table. -#}
{% macro before_after(name) %}
{%- set changes = source('silver', 'changes') -%}
{%- set control_events = source('silver', 'control_events') -%}
{%- set batches = source('silver', 'batches') -%}
{%- set applied = source('gold_state', 'applied') -%}
{%- set behind = progress(name) if execute else [] -%}
{%- if not behind -%}
-- nothing new
{%- else -%}
{%- set contract = contract(name) -%}
{%- set schema, table = contract.table.split('.') -%}
{%- set columns = contract.columns -%}
with logged as (
  select distinct source, batch_id from {{ this }} where {{ batch_filter(behind) }}
),

changes as (
  select c.*, {{ members_of('before', columns) }} as b, {{ members_of('after', columns) }} as a,
         operation in ('INSERT', 'REFRESH', 'UPDATE') as has_row,
         rpad(hex(change_mask), {{ 2 * ((columns | length + 7) // 8) }}, '0') as mask
  from {{ changes }} c left anti join logged l on l.source = c.source and l.batch_id = c.batch_id
  where source_schema = '{{ schema }}' and source_table = '{{ table }}' and {{ batch_filter(behind, true) }}
),

typed as (
  select *,
         {{ changed(columns) }} as changed,
         {{ not_supplied(columns) }} as not_supplied,
         operation = 'UPDATE' and ({% for k in contract.key %}b.`{{ k }}` <> a.`{{ k }}`{{ ' or ' if not loop.last }}{% endfor %}) is true as key_changed
  from changes
),

empty_loads as (
  select e.* from {{ control_events }} e left anti join logged l on l.source = e.source and l.batch_id = e.batch_id
  where kind = 'empty_load' and change_seq is not null
    and source_schema = '{{ schema }}' and source_table = '{{ table }}' and {{ batch_filter(behind, true) }}
)

select source, change_seq, operation, change_oper,
       {{ image_of('b', columns) }} as before, {{ image_of('a', columns) }} as after, changed, not_supplied, key_changed,
       transaction_id, transaction_event_counter, transaction_last_event, change_timestamp, load_id, table_version,
       column_states, unit_id, unit_offset, batch_id
from typed
union all
select source, change_seq, 'EMPTY_LOAD', 'E', null, null, array(), array(), false,
       null, null, null, null, load_id, null,
       null, unit_id, unit_offset, batch_id
from empty_loads
{%- endif -%}
{% endmacro %}
