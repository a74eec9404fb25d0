{# Create the table of a model from its declared columns: the contract is the DDL. Statistics on few columns keep
   appends cheap; Delta has none for boolean and binary. There are no deletion vectors, which cost every scan's
   planning, until a table is so large that rewriting its files would cost more (inlet.gold.build). -#}
{% macro create_gold_table(node, statistics, contract, is_replacing=false) %}
  {%- set kept = [] -%}
  {%- for name in statistics if node.columns[name].data_type not in ('boolean', 'binary') -%}
    {%- do kept.append(name if modules.re.fullmatch('\\w+', name, modules.re.ASCII) else identifier(name)) -%}
  {%- endfor -%}
  {%- set columns -%}
    {%- for column in node.columns.values() -%}
  {{ identifier(column.name) }} {{ column.data_type }}
      {%- if column.description %} comment {{ text_literal(column.description) }}{% endif -%}
      {{ ',\n  ' if not loop.last }}
    {%- endfor -%}
  {%- endset -%}
  {%- do create_table(node.alias, columns, dict({'delta.enableDeletionVectors': 'false',
                      'delta.dataSkippingStatsColumns': kept | join(','), 'inlet.key': contract.key | join(',')},
                      **name_properties(contract)), is_replacing) -%}
{% endmacro %}


{# Create a table of gold, unless it is there. `inlet` creates those of a small table without a statement
   (inlet.lake.entries). In: its column list and properties. #}
{% macro create_table(name, columns, properties, is_replacing=false) %}
  {%- if gold_state().small.get(name.rsplit('__', 1)[0]) and not is_replacing -%}
    {%- do adapter.small_batches.create_table(name, columns, properties) -%}
  {%- else -%}
    {% call statement('create') %}
{{ 'create or replace table' if is_replacing else 'create table if not exists' }} {{ target.schema }}.{{ name }} (
  {{ columns }}
) using delta tblproperties ({{ properties_list(properties) }})
    {% endcall %}
  {%- endif -%}
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
