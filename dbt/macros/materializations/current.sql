{# Materialization of `<t>__current`: merge what is staged, then commit the batch. #}
{% materialization current, adapter='spark', supported_languages=['sql'] %}
  {%- set name = model.name.removesuffix('__current') -%}
  {%- if is_staged(name) -%}
    {% call statement('main') %}{{ apply_current(name) }}{% endcall %}
    {%- do commit(name) -%}
  {%- else -%}
    {% call noop_statement('main', 'nothing new') %}{% endcall %}
  {%- endif -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}
