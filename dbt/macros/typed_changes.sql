{# Silver's changes of one table, typed: one row per change. An empty full load, the end of a load and a column that is
   added again are rows too, because they say something about every row of the table. In: rows of `progress`; a log
   whose batches are left out (none: every batch up to where they come); whether there may be events of loads. -#}
{% macro typed_changes(name, lagging, log=none, has_load_events=true) -%}
{%- set changes, control_events = source('silver', 'changes'), source('silver', 'control_events') -%}
{%- set contract = contract(name) -%}
{%- set of_table -%}
concat(source_schema, '.', source_table) in ({{ quoted(contract.tables) }}) and {{ batch_filter(lagging, true) }}
{%- endset -%}
with {% if log -%}
logged as (
  select distinct source, batch_id from {{ log }} where {{ batch_filter(lagging) }}
),

{% endif -%}
changes as (
  select c.*, operation in ('UPDATE', 'UPSERT') as is_update,
         operation in ('INSERT', 'REFRESH', 'UPDATE', 'UPSERT') as has_row
  from {{ changes }} c{{ ' left anti join logged l on l.source = c.source and l.batch_id = c.batch_id' if log }}
  where {{ of_table }}
)
{%- if has_load_events %},

load_events as (
  select e.* from {{ control_events }} e
  {{- ' left anti join logged l on l.source = e.source and l.batch_id = e.batch_id' if log }}
  where kind in ('empty_load', 'load_end') and change_seq is not null and {{ of_table }}
)
{%- endif %}

{% for version in versions_of_changes(contract, changes, of_table) -%}
{{ typed_as(contract, version) }}
{{ 'union all' if not loop.last or has_load_events }}
{% endfor -%}
{% if has_load_events -%}
select source, change_seq, upper(kind), upper(substr(kind, 1, 1)), null, null, array(), array(), array(), false,
       null, null, null, null, load_id, null,
       null, unit_id, unit_offset, batch_id
from load_events
{%- endif -%}
{%- if contract.key %}{{ columns_added_again(contract, lagging, log) }}{% endif %}
{%- endmacro %}


{# The versions that the changes at hand were read by; every one of the contract where it has only one. -#}
{% macro versions_of_changes(contract, changes, of_table) -%}
  {%- set found = contract.versions -%}
  {%- if found | length > 1 -%}
    {%- set found = [] -%}
    {%- for row in run_query('select distinct table_version from ' ~ changes ~ ' where ' ~ of_table ~ ' order by 1') -%}
      {%- set version = contract.versions | selectattr('version', 'equalto', row.table_version | int) | list -%}
      {%- if not version -%}
        {{ exceptions.raise_compiler_error(
          contract.tables[0] ~ ' has changes of version ' ~ row.table_version
                                              ~ ', which its contract does not tell: put it under `earlier`') }}
      {%- endif -%}
      {%- do found.append(version[0]) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(found) }}
{%- endmacro %}


{# Rows for the places where a column that was dropped is added again: each supplies null for these columns and nothing
   else. A source has one from its first change at or after the place on. -#}
{% macro columns_added_again(contract, lagging, log) -%}
{%- for place, columns in (contract.get('added_again') or {}).items() -%}
  {%- set before = [] -%}
  {%- for row in lagging if (row.applied_change_seq or '') < place %}{% do before.append(row.source) %}{% endfor -%}
  {%- if before %}
union all
select source, '{{ place }}', 'COLUMN_ADDED', 'C', null, null, array(), array(),
       array_except({{ names_of(contract.columns) }}, array({{ quoted(columns) }})), false,
       null, null, null, null, null, null,
       null, null, null, min(batch_id)
from (select source, change_seq, batch_id from changes union all select source, change_seq, batch_id from load_events)
where change_seq >= '{{ place }}' and {{ source_filter(before) }}
    {%- if log %}
  and source not in (select source from {{ log }} where {{ batch_filter(lagging) }} and change_seq = '{{ place }}'
                     and operation = 'COLUMN_ADDED')
    {%- endif %}
group by source
  {%- endif -%}
{%- endfor -%}
{%- endmacro %}
