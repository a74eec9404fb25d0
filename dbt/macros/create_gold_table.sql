{# Create the table of a model from its declared columns: the contract is the DDL. Statistics on few columns keep
   appends cheap; Delta has none for boolean and binary. There are no deletion vectors, which cost every scan's
   planning, until a table is so large that rewriting its files would cost more (inlet.gold.build). -#}
{% macro create_gold_table(node, statistics, contract, is_replacing=false) %}
  {%- set kept = [] -%}
  {%- for name in statistics if node.columns[name].data_type not in ('boolean', 'binary') -%}
    {%- do kept.append(name if modules.re.fullmatch('\\w+', name, modules.re.ASCII) else identifier(name)) -%}
  {%- endfor -%}
  {% call statement('create') %}
{{ 'create or replace table' if is_replacing else 'create table if not exists' }} gold.{{ node.alias }} (
  {% for column in node.columns.values() -%}
  {{ identifier(column.name) }} {{ column.data_type }}
  {%- if column.description %} comment {{ text_literal(column.description) }}{% endif %}{{ ',' if not loop.last }}
  {% endfor -%}
) using delta tblproperties (delta.enableDeletionVectors = false,
  delta.dataSkippingStatsColumns = {{ text_literal(kept | join(",")) }},
  inlet.key = {{ text_literal(contract.key | join(",")) }}{{ name_properties(contract) }})
  {% endcall %}
{% endmacro %}


{# The tables of `past` and `current`. #}
{% macro create_version_tables(name, is_replacing=false) %}
  {%- set contract = contract(name) -%}
  {%- set our, key = ours(contract), contract.key -%}
  {%- do create_gold_table(graph.nodes['model.inlet.' ~ name ~ '__past'],
                        [our.source, our.valid_from_seq, our.valid_to_seq] + key[:2], contract, is_replacing) -%}
  {%- do create_gold_table(graph.nodes['model.inlet.' ~ name ~ '__current'],
                        [our.source, our.valid_from_seq] + key[:3], contract, is_replacing) -%}
{% endmacro %}
