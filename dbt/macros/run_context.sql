{# What `inlet` hands to a run, so that dbt need not ask again: {ledger, applied, few, kept} (inlet.run_context). Empty
   in a plain `dbt build`. -#}
{% macro run_context() -%}
  {%- set view = setting('inlet.run_context') -%}
  {{ return({} if view == '<undefined>' else fromjson(run_query('select context from ' ~ view)[0]['context'])) }}
{%- endmacro %}
