{# Materialization of `<t>__current`: apply what `past` has staged in this run, then commit the batch; what an earlier
   run left staged may not be in past yet, so it is finished as a whole. #}
{% materialization current, adapter='spark', supported_languages=['sql'] %}
  {%- set name = model.name.removesuffix('__current') -%}
  {%- set batch = is_staged(name) -%}
  {%- do small_query_settings(not batch) -%}
  {%- if batch is mapping and batch.is_small -%}
    {%- set contract, our = contract(name), ours(contract(name)) -%}
    {%- set columns = version_columns(contract, is_current=true) -%}
    {%- if batch.touched_rows -%}
      {%- do apply_current(name, batch, adapter.small_batches.last_versions(name, our),
                           adapter.small_batches.has_touched_rows(name)) -%}
    {%- else -%}
      {%- do adapter.small_batches.replace_current(name, columns, [our.source] + contract.key, our) -%}
    {%- endif -%}
    {%- do adapter.small_batches.commit(name, our) -%}
    {%- do gold_state().staged.update({name: false}) -%}
  {%- elif batch is mapping -%}
    {%- do apply_current(name, batch) -%}
    {%- do commit(name) -%}
  {%- elif batch -%}
    {%- do recover(name) -%}
  {%- endif -%}
  {% call noop_statement('main', 'applied' if batch else 'nothing new') %}{% endcall %}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}
