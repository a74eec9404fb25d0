{# Materialization of `<t>__current`: merge what `past` has staged in this run, then commit the batch; what an earlier run left
   staged may not be in past yet, so it is healed as a whole. #}
{% materialization current, adapter='spark', supported_languages=['sql'] %}
  {%- set name = model.name.removesuffix('__current') -%}
  {%- do pace(not is_staged(name)) -%}
  {%- if is_staged(name) == 'now' -%}
    {% call statement('main') %}{{ apply_current(name) }}{% endcall %}
    {%- do commit(name) -%}
  {%- else -%}
    {%- if is_staged(name) -%}{%- do heal(name) -%}{%- endif -%}
    {% call noop_statement('main', 'nothing new') %}{% endcall %}
  {%- endif -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}
