{# Materialization of `<t>__past`: finish what a crash left, fold the new changes, write the versions they close. #}
{% materialization past, adapter='spark', supported_languages=['sql'] %}
  {%- set name = model.name.removesuffix('__past') -%}
  {%- set there = gold_tables(name) -%}
  {%- if this.identifier not in there or name ~ '__current' not in there -%}
    {%- do create_version_tables(name) -%}
  {%- endif %}

  {%- if is_staged(name) -%}{%- do recover(name) -%}{%- endif -%}
  {%- do small_query_settings(true) -%}
  {%- set lagging = progress(name) -%}
  {%- set batch = survey(name, lagging) if lagging else none -%}
  {%- if batch -%}
    {%- do stage(name, batch) -%}
  {%- endif -%}
  {%- if batch and batch.is_small -%}
    {%- set contract = contract(name) -%}
    {%- do adapter.small_batches.append_closed(name, version_columns(contract), ours(contract).valid_to_seq) -%}
    {% call noop_statement('main', 'appended') %}{% endcall %}
  {%- elif batch -%}
    {% call statement('main') %}{{ apply_past(name, batch.has_rewind, batch.rewind_seq) }}{% endcall %}
  {%- else -%}
    {% call noop_statement('main', 'nothing new') %}{% endcall %}
  {%- endif -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}
