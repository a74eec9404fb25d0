{# The rows of a query of one table's gold, as dicts. In: is DataFusion asked, and the query made for it
   (inlet.gold.queries). -#}
{% macro rows_of_gold(name, query, is_local) -%}
  {{ return(adapter.small_batches.queries.answer(name, query) if is_local else query_rows(query)) }}
{%- endmacro %}


{# True if a table's current rows, and its closed versions, are few enough to be read and written whole without Spark.
   In: whether past matters. -#}
{% macro is_whole(name, has_past) -%}
  {%- set small = gold_state().small.get(name, {}) -%}
  {{ return(small.get('is_whole', false) and (small.is_past_whole or not has_past)) }}
{%- endmacro %}


{# True if queries of a table's gold are asked of DataFusion: it is small, and its names are literals that need no
   escapes, which the two engines write differently. In: whether past matters; rows with the sources that are read. -#}
{% macro is_local(name, has_past, rows) -%}
  {%- if not is_whole(name, has_past) %}{{ return(false) }}{% endif -%}
  {%- set contract, names = contract(name), rows | map(attribute='source') | list -%}
  {%- do names.extend(contract.columns | map(attribute='name')) -%}
  {%- for version in contract.versions %}{% do names.extend(version.columns | map(attribute='member')) %}{% endfor -%}
  {{ return("\\" not in quoted(names)) }}
{%- endmacro %}


{# The function that makes an array. -#}
{% macro array_of(batch) -%}
  {{ return('make_array' if batch.is_local else 'array') }}
{%- endmacro %}
