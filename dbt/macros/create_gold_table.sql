{# Create the table of a model from its declared columns: the contract is the DDL. Statistics on few columns keep appends cheap;
   Delta has none for boolean and binary. -#}
{% macro create_gold_table(node, statistics) %}
  {%- set kept = [] -%}
  {%- for name in statistics if node.columns[name].data_type not in ('boolean', 'binary') %}{% do kept.append(name) %}{% endfor -%}
  {% call statement('create') %}
create table if not exists gold.{{ node.alias }} (
  {% for column in node.columns.values() -%}
  `{{ column.name }}` {{ column.data_type }}{% if column.description %} comment '{{ column.description | replace("'", "\\'") }}'{% endif %}{{ ',' if not loop.last }}
  {% endfor -%}
) using delta tblproperties (delta.enableDeletionVectors = true, delta.dataSkippingStatsColumns = '{{ kept | join(",") }}')
  {% endcall %}
{% endmacro %}
