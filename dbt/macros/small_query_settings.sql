{# Statements that touch only a batch's few new changes run at the pace of few rows, whatever the size of the table;
   those that read the table run at its own. `inlet` says which settings that takes; a plain `dbt build` has one
   pace. -#}
{% macro small_query_settings(is_few) -%}
  {%- set state = graph.get('inlet_small_query_settings', {}) -%}
  {%- if state.get('invocation_id') != invocation_id -%}
    {%- set state = {'invocation_id': invocation_id, 'is_few': false,
                   'few': run_context().get('few', {}), 'many': {}} -%}
    {%- for key in state.few %}{% do state.many.update({key: setting(key)}) %}{% endfor -%}
    {%- do graph.update({'inlet_small_query_settings': state}) -%}
  {%- endif -%}
  {%- if state.is_few != is_few -%}
    {%- for key, value in (state.few if is_few else state.many).items() -%}
      {%- do run_query('set ' ~ key ~ '=' ~ value) -%}
    {%- endfor -%}
    {%- do state.update({'is_few': is_few}) -%}
  {%- endif -%}
{%- endmacro %}


{# The value of a Spark setting. -#}
{% macro setting(key) -%}
  {{ return(run_query('set ' ~ key)[0]['value']) }}
{%- endmacro %}
