{# Empty a table's gold, so that the next steps make it from nothing. In: the tables that it has. -#}
{% macro truncate_gold(name, there) -%}
  {%- set gold = target.schema ~ '.' ~ name -%}
  {%- do run_query('create table if not exists ' ~ gold ~ '__forgetting (since timestamp) using delta') -%}
  {%- if name ~ '__folded' in there %}{% do run_query('drop table ' ~ gold ~ '__folded') %}{% endif -%}
  {%- if gold_state().applied.keys() | selectattr(0, 'equalto', name) | list -%}
    {%- do run_query("delete from " ~ source('gold_state', 'applied') ~ " where table_name = '" ~ name ~ "'") -%}
  {%- endif -%}
  {%- do create_gold(name, is_replacing=true) -%}
  {%- do run_query('drop table ' ~ gold ~ '__forgetting') -%}
  {%- do reload_state(name) -%}
  {%- do gold_state().small.pop(name, none) -%}
{%- endmacro %}


{# Create the tables of a table's gold; the log last, so that all are there where it is. -#}
{% macro create_gold(name, is_replacing=false) %}
  {%- if contract(name).key -%}
    {%- do create_version_tables(name, is_replacing) -%}
    {%- if not is_replacing %}{% do create_staging(name, 'folded') %}{% endif -%}
  {%- endif -%}
  {%- do create_gold_table(model, ['source', 'change_seq', 'operation', 'load_id', 'batch_id'],
                            contract(name), is_replacing) -%}
{%- endmacro %}
