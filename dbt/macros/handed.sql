{# What `inlet` hands to a run, so that dbt need not ask again: {ledger, applied, few} (inlet.gold). Empty in a plain `dbt build`.
   A `~` stands between its letters, else Spark hides it for words like `url` in it. -#}
{% macro handed() -%}
  {%- set said = setting('inlet.gold') -%}
  {{ return({} if said == '<undefined>' else fromjson(said[::2])) }}
{%- endmacro %}
