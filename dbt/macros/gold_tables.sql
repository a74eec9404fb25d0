{# Names of the tables in gold that belong to one table: which steps have run before. `inlet` says them where all
   exist, so that this run makes none. -#}
{% macro gold_tables(name) -%}
  {%- set existing = gold_state().existing.get(name) -%}
  {%- if not existing -%}
    {%- set existing = run_query("show tables in gold like '" ~ name ~ "__*'").columns['tableName'].values() | list -%}
  {%- endif -%}
  {{ return(existing) }}
{%- endmacro %}
