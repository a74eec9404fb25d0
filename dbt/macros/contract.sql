{# The contract of a table as the generator wrote it: tables (every name it went by), key, gold's columns {name, type},
   and versions {version, columns: {name in gold or none, member, type, encoding}}; `ours`, where columns of the table
   have the names of some of ours; `added_again`, {place: columns} where dropped columns are added again;
   `column_mapping`, where their names ask Delta for it. -#}
{% macro contract(name) -%}
  {{ return(graph.nodes['model.inlet.' ~ name ~ '__before_after'].config.meta) }}
{%- endmacro %}


{# What each column of ours is called in the versions of a table: as always, or with `_` in front where the table has a
   column of that name. -#}
{% macro ours(contract) -%}
  {%- set names = {} -%}
  {%- for name in ['source', 'valid_from_seq', 'valid_to_seq', 'valid_from', 'valid_to',
                  'is_complete', 'not_supplied', 'conflict'] + lineage()
                  + ['_is_last', '_through_batch_id', '_through_change_seq'] -%}
    {%- do names.update({name: contract.get('ours', {}).get(name, name)}) -%}
  {%- endfor -%}
  {{ return(names) }}
{%- endmacro %}


{# Columns of ours, read from the versions of a table under the names that they always have. In: `ours`, and which. -#}
{% macro unprefixed(our, names) -%}
  {%- for name in names -%}
    {{ our[name] ~ ' as ' ~ name if our[name] != name else name }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{# Further properties of a table that holds columns of a contract, {name: value}: mostly none; the mode of Delta that
   takes any name; what columns of ours are called. -#}
{% macro name_properties(contract) -%}
{%- set properties, our = {}, [] -%}
{%- for name, renamed in contract.get('ours', {}).items() %}{% do our.append(name ~ '=' ~ renamed) %}{% endfor -%}
{%- if our %}{% do properties.update({'inlet.ours': our | join(',')}) %}{% endif -%}
{%- if contract.added_again -%}
  {%- do properties.update({'inlet.added_again': contract.added_again | join(',')}) -%}
{%- endif -%}
{%- if contract.column_mapping -%}
  {%- do properties.update({'delta.columnMapping.mode': contract.column_mapping}) -%}
{%- endif -%}
{{ return(properties) }}
{%- endmacro %}


{# Properties of a table as SQL. -#}
{% macro properties_list(properties) -%}
{%- for name, value in properties.items() -%}
  {{ name }} = {{ text_literal(value) }}{{ ', ' if not loop.last }}
{%- endfor -%}
{%- endmacro %}
