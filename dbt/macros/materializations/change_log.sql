{# Materialization of `<t>__before_after`: append what is new. --full-refresh forgets the whole table, all of gold for it: the log
   goes first, so that a run which finds none goes on with the forgetting. #}
{% materialization change_log, adapter='spark', supported_languages=['sql'] %}
  {%- set name = model.name.removesuffix('__before_after') -%}
  {%- set relation = this.incorporate(type='table') -%}
  {%- set there = gold_tables(name) -%}
  {%- set is_forgetting = should_full_refresh() or this.identifier not in there -%}
  {%- if is_forgetting -%}
    {%- for table in there | sort if table.endswith(('__before_after', '__past', '__current', '__folded')) -%}
      {% do run_query('drop table ' ~ target.schema ~ '.' ~ table) %}
    {%- endfor -%}
    {%- if gold_state().applied.keys() | selectattr(0, 'equalto', name) | list -%}
      {% do run_query("delete from " ~ source('gold_state', 'applied') ~ " where table_name = '" ~ name ~ "'") %}
    {%- endif -%}
    {%- do gold_state(is_stale=true) -%}
  {%- endif -%}
  {%- if is_forgetting -%}
    {%- do create_gold_table(model, ['source', 'change_seq', 'operation', 'load_id', 'batch_id']) -%}
    {%- set sql = before_after(name) -%}
  {%- endif -%}
  {%- do pace(true) -%}
  {%- if 'select' in sql -%}
    {% call statement('main') %}insert into {{ this }} ({{ columns_of(model.columns) }})
{{ sql }}{% endcall %}
  {%- else -%}
    {% call noop_statement('main', 'nothing new') %}{% endcall %}
  {%- endif -%}
  {{ return({'relations': [relation]}) }}
{% endmaterialization %}
