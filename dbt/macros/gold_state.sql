{# The ledger and gold.applied, for all tables (or those a run of Inlet wants), once a run. Out: {whole: {(SCHEMA.TABLE,
   source): last batch that has the table}, applied: {(table, source): {batch_id, change_seq}}, staged: {table: is there
   a batch to commit}, kept: the format of tables that do not outlive a batch, small: {table that is
   written without Spark: what its state is (inlet.gold.small_batches)}, existing: {table: its tables in gold, where
   these are all}, least_at: a moment after all checks of gold, where their clock was ahead}}. A run of dbt has one
   `graph`, so the state is kept there, under the run's id; `reload_state` asks again for one table. #}
{% macro gold_state() -%}
  {%- set state = graph.get('inlet_state', {}) -%}
  {%- if state.get('invocation_id') != invocation_id -%}
    {%- set from_inlet = run_context() -%}
    {%- if not from_inlet -%}
      {%- do from_inlet.update({'ledger': [], 'applied': []}) -%}
      {%- set query -%}
select true as is_ledger, name, source, max(batch_id) as batch_id, cast(null as string) as change_seq
from (select source, batch_id, explode(tables) as name from {{ source('silver', 'batches') }}) group by source, name
union all
select false, table_name, source, max(through_batch_id), max(through_change_seq)
from {{ source('gold_state', 'applied') }} group by source, table_name
      {%- endset -%}
      {%- for row in query_rows(query) -%}
        {%- set rows = from_inlet['ledger' if row.is_ledger else 'applied'] -%}
        {%- do rows.append([row.name, row.source, row.batch_id | int, row.change_seq]) -%}
      {%- endfor -%}
      {%- if query_rows("show tables in checks like 'results'") -%}
        {%- set last = "select string(timestamp_micros(max(run_id) + 1)) as at from checks.results where step = 'gold'"
                       ~ " having timestamp_micros(max(run_id)) >= current_timestamp()" -%}
        {%- for row in query_rows(last) %}{% do from_inlet.update({'least_at': row.at}) %}{% endfor -%}
      {%- endif -%}
    {%- endif -%}
    {%- set state = {'invocation_id': invocation_id, 'whole': {}, 'applied': {}, 'staged': {},
                  'kept': from_inlet.get('kept', 'delta'), 'small': from_inlet.get('small', {}),
                  'existing': from_inlet.get('existing', {}), 'least_at': from_inlet.get('least_at')} -%}
    {%- for name, new in state.small.items() if not new.is_staged -%}
      {%- do state.staged.update({name: false}) -%}
    {%- endfor -%}
    {%- for row in from_inlet.ledger %}{% do state.whole.update({(row[0], row[1]): row[2]}) %}{% endfor -%}
    {%- for row in from_inlet.applied if row[2] >= state.applied.get((row[0], row[1]), {'batch_id': -1}).batch_id -%}
      {%- do state.applied.update({(row[0], row[1]): {'batch_id': row[2], 'change_seq': row[3]}}) -%}
    {%- endfor -%}
    {%- do graph.update({'inlet_state': state}) -%}
  {%- endif -%}
  {{ return(state) }}
{%- endmacro %}


{# Ask again how far gold has come with one table; in place, for other tables may be run beside it. -#}
{% macro reload_state(name) -%}
  {%- set state = gold_state() -%}
  {%- do state.staged.pop(name, none) -%}
  {%- for place in state.applied.keys() | list if place[0] == name %}{% do state.applied.pop(place) %}{% endfor -%}
  {%- for row in query_rows("select source, max(through_batch_id) as batch_id, max(through_change_seq) as change_seq"
                            ~ " from "
                     ~ source('gold_state', 'applied') ~ " where table_name = '" ~ name ~ "' group by source") -%}
    {%- do state.applied.update({(name, row.source):
            {'batch_id': row.batch_id | int, 'change_seq': row.change_seq}}) -%}
  {%- endfor -%}
{%- endmacro %}
