{# Columns of past and of staged versions; current has the same but valid_to_seq. -#}
{% macro version_columns(contract, is_current=false) -%}
  {{ return(['source'] + contract.columns | map(attribute='name') | list + ['valid_from_seq'] + ([] if is_current else ['valid_to_seq'])
            + ['is_complete', 'not_supplied', 'conflict'] + lineage()) }}
{%- endmacro %}
