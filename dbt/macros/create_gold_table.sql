{# Create the table of a model from its declared columns: the contract is the DDL. Statistics on few columns keep appends cheap;
   Delta has none for boolean and binary. What is only appended to has no deletion vectors: they cost every scan's planning. -#}
{% macro create_gold_table(node, statistics, key, is_replacing=false, is_altered=false) %}
  {%- set kept = [] -%}
  {%- for name in statistics if node.columns[name].data_type not in ('boolean', 'binary') %}{% do kept.append(name) %}{% endfor -%}
  {% call statement('create') %}
{{ 'create or replace table' if is_replacing else 'create table if not exists' }} gold.{{ node.alias }} (
  {% for column in node.columns.values() -%}
  `{{ column.name }}` {{ column.data_type }}{% if column.description %} comment {{ text_literal(column.description) }}{% endif %}{{ ',' if not loop.last }}
  {% endfor -%}
) using delta tblproperties (delta.enableDeletionVectors = {{ is_altered | lower }}, delta.dataSkippingStatsColumns = '{{ kept | join(",") }}', inlet.key = '{{ key | join(",") }}')
  {% endcall %}
{% endmacro %}


{# The tables of `past` and `current`. #}
{% macro create_version_tables(name, is_replacing=false) %}
  {%- set key = contract(name).key -%}
  {%- do create_gold_table(graph.nodes['model.inlet.' ~ name ~ '__past'], ['source', 'valid_from_seq', 'valid_to_seq'] + key[:2], key, is_replacing, is_altered=true) -%}
  {%- do create_gold_table(graph.nodes['model.inlet.' ~ name ~ '__current'], ['source', 'valid_from_seq'] + key[:3], key, is_replacing, is_altered=true) -%}
{% endmacro %}
