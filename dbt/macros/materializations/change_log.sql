{# Materialization of `<t>__before_after`: append what is new. --full-refresh empties the whole table, all of gold for
   it, while `<t>__forgetting` stands, so that a run that dies is finished by the next. Tables are emptied by replacing
   them: their earlier versions stay, which the public views may still show. Of a table without a key the log is all,
   and commits by itself. #}
{% materialization change_log, adapter='spark', supported_languages=['sql'] %}
  {%- set name = model.name.removesuffix('__before_after') -%}
  {%- set relation = this.incorporate(type='table') -%}
  {%- set small = gold_state().small.get(name) -%}
  {%- set there = gold_tables(name) -%}
  {%- if small and small.is_new -%}
    {%- do create_gold(name) -%}
  {%- elif should_full_refresh() or this.identifier not in there or name ~ '__forgetting' in there -%}
    {%- do truncate_gold(name, there) -%}
    {%- set sql = before_after(name) -%}
  {%- endif -%}
  {%- do small_query_settings(true) -%}
  {%- set small = gold_state().small.get(name) -%}
  {%- if 'select' in sql and small -%}
    {%- do adapter.small_batches.append_log(name, model.columns.keys() | list, sql,
                                            contract(name).key and not small.is_logged, not small.is_whole) -%}
    {% call noop_statement('main', 'appended') %}{% endcall %}
  {%- elif 'select' in sql -%}
    {% call statement('main') %}insert into {{ this }} ({{ columns_of(model.columns) }})
{{ sql }}{% endcall %}
  {%- else -%}
    {% call noop_statement('main', 'nothing new') %}{% endcall %}
  {%- endif -%}
  {%- if not contract(name).key %}{% do commit_log(name) %}{% endif -%}
  {{ return({'relations': [relation]}) }}
{% endmaterialization %}
