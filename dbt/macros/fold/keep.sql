{# Compute a step once into `<t>__folded_<step>`, for a plan that repeated it would grow beyond planning (a cached view does not
   help: its whole plan is analysed again wherever it is read). Out: the table's name. -#}
{% macro keep(name, step, query) -%}
  {%- set table = target.schema ~ '.' ~ name ~ '__folded_' ~ step -%}
  {%- do run_query('create or replace table ' ~ table ~ ' using delta tblproperties (delta.dataSkippingNumIndexedCols = 0' ~ name_properties(contract(name)) ~ ') as\n' ~ query) -%}
  {{ return(table) }}
{%- endmacro %}
