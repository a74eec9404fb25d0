{# What `inlet` hands to a run, so that dbt need not ask again: {ledger, applied, few, kept, small, existing}
   (inlet.gold.build). Empty in a plain `dbt build`. Asked once a run of dbt, and kept as text, so that each caller has
   its own. -#}
{% macro run_context() -%}
  {%- set known = graph.get('inlet_run_context', {}) -%}
  {%- if known.get('invocation_id') != invocation_id -%}
    {%- set view = setting('inlet.run_context') -%}
    {%- set text = '{}' if view == '<undefined>' else run_query('select context from ' ~ view)[0]['context'] -%}
    {%- set known = {'invocation_id': invocation_id, 'text': text} -%}
    {%- do graph.update({'inlet_run_context': known}) -%}
  {%- endif -%}
  {{ return(fromjson(known.text)) }}
{%- endmacro %}
