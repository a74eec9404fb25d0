{# Columns of past and of staged versions; current has the same but valid_to_seq. -#}
{% macro version_columns(contract, is_current=false) -%}
  {%- set our, names = ours(contract), [] -%}
  {%- for name in ['valid_from_seq'] + ([] if is_current else ['valid_to_seq'])
                  + ['is_complete', 'not_supplied', 'conflict'] + lineage() -%}
    {%- do names.append(our[name]) -%}
  {%- endfor -%}
  {{ return([our.source] + contract.columns | map(attribute='name') | list + names) }}
{%- endmacro %}
