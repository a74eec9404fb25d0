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
    {%- set columns, our = version_columns(contract(name)), ours(contract(name)) -%}
    {%- if batch.has_rewind -%}
      {%- do adapter.small_batches.replace_past(name, columns, [our.source] + contract(name).key, our) -%}
    {%- else -%}
      {%- do adapter.small_batches.append_closed(name, columns, our.valid_to_seq) -%}
    {%- endif -%}
    {% call noop_statement('main', 'appended') %}{% endcall %}
  {%- elif batch -%}
    {% call statement('main') %}{{ apply_past(name, batch.has_rewind, batch.rewind_seq) }}{% endcall %}
  {%- else -%}
    {% call noop_statement('main', 'nothing new') %}{% endcall %}
  {%- endif -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}
