{# What `inlet` hands to a run, so that dbt need not ask again: {ledger, applied, few, kept, small, existing}
   (inlet.gold.build). Empty in a plain `dbt build`. Each caller has its own. -#}
{% macro run_context() -%}
  {{ return(fromjson(adapter.run_context or '{}')) }}
{%- endmacro %}
