{# Materialization of `<t>__current`: merge what is staged, then commit the batch. #}
{% materialization current, adapter='spark', supported_languages=['sql'] %}
  {%- set name = model.name.removesuffix('__current') -%}
  {%- set staged = progress(name, name ~ '__folded' in gold_tables(name)) | selectattr('state', 'equalto', 'staged') | list -%}
  {%- if staged -%}
    {% call statement('main') %}{{ apply_current(name) }}{% endcall %}
    {% call statement('commit') %}{{ commit_applied(name) }}{% endcall %}
  {%- else -%}
    {% call noop_statement('main', 'nothing new') %}{% endcall %}
  {%- endif -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}
