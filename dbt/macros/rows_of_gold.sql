{# The rows of a query of one table's gold, as dicts. What DataFusion reads as Spark does is answered without Spark
   where the tables are small (inlet.gold.queries). In: is that certain already; else the text decides. -#}
{% macro rows_of_gold(name, query, is_local=none) -%}
  {%- set is_plain = is_local if is_local is not none else is_whole(name, true) and is_portable(query) -%}
  {{ return(adapter.small_batches.queries.answer(name, query) if is_plain else query_rows(query)) }}
{%- endmacro %}


{# True if a table's current rows, and its closed versions, are few enough to be read and written whole without Spark.
   In: whether past matters. -#}
{% macro is_whole(name, has_past) -%}
  {%- set small = gold_state().small.get(name, {}) -%}
  {{ return(small.get('is_whole', false) and (small.is_past_whole or not has_past)) }}
{%- endmacro %}


{# True if both engines read a text alike: its literals have no escapes. -#}
{% macro is_portable(text) -%}
  {{ return("\\" not in text) }}
{%- endmacro %}


{# The function that makes an array. -#}
{% macro array_of(batch) -%}
  {{ return('make_array' if batch.is_local else 'array') }}
{%- endmacro %}
