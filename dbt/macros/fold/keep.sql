{# Compute a step once into `<t>__folded_<step>`, for a plan that repeated it would grow beyond planning (a cached view
   does not help: its whole plan is analysed again wherever it is read). Out: the table's name. A table that nobody else
   reads needs no commits: in a folder it is plain Parquet, for Delta asks for its files anew at each of the many places
   where a plan reads it. What a run that died has left of it is taken away before a run (gold.py). In: whether the
   fold is made without Spark: then it is a view, or a table in memory where its columns are given. -#}
{% macro keep(name, is_local, step, query, columns=[]) -%}
  {%- set table, format = target.schema ~ '.' ~ name ~ '__folded_' ~ step, gold_state().kept -%}
  {%- set properties = dict({'delta.dataSkippingNumIndexedCols': '0'}, **name_properties(contract(name))) -%}
  {%- set properties = ' tblproperties (' ~ properties_list(properties) ~ ')' if format == 'delta' else '' -%}
  {%- if is_local -%}
    {%- do adapter.small_batches.queries.keep(name, table, query, columns) -%}
  {%- else -%}
    {%- do run_query('drop table if exists ' ~ table) -%}
    {%- do run_query('create table ' ~ table ~ ' using ' ~ format ~ properties ~ ' as\n' ~ query) -%}
  {%- endif -%}
  {{ return(table) }}
{%- endmacro %}
