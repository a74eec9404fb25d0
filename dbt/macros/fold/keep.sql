{# Compute a step once into `<t>__folded_<step>`, for a plan that repeated it would grow beyond planning (a cached view does not
   help: its whole plan is analysed again wherever it is read). Out: the table's name. A table that nobody else reads needs no commits: in
   a folder it is plain Parquet, for Delta asks for its files anew at each of the many places where a plan reads it. -#}
{% macro keep(name, step, query) -%}
  {%- set table = target.schema ~ '.' ~ name ~ '__folded_' ~ step -%}
  {%- if gold_state().kept == 'delta' -%}
    {%- do run_query('create or replace table ' ~ table ~ ' using delta tblproperties (delta.dataSkippingNumIndexedCols = 0' ~ name_properties(contract(name)) ~ ') as\n' ~ query) -%}
  {%- else -%}
    {%- do run_query('drop table if exists ' ~ table) -%}
    {%- do run_query('create table ' ~ table ~ ' using ' ~ gold_state().kept ~ ' as\n' ~ query) -%}
  {%- endif -%}
  {{ return(table) }}
{%- endmacro %}
