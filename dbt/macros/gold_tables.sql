{# Names of the tables in gold that belong to one table: which steps have run before. -#}
{% macro gold_tables(name) -%}
  {{ return(run_query("show tables in gold like '" ~ name ~ "__*'").columns['tableName'].values() | list) }}
{%- endmacro %}
