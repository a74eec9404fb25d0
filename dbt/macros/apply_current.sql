{# Move current to the staged batch: drop keys whose last version is closed, replace and add the open ones. Repeatable. -#}
{% macro apply_current(name) -%}
  {%- set contract = contract(name) -%}
  {%- set columns = version_columns(contract, is_current=true) -%}
merge into {{ target.schema }}.{{ name }}__current c
using (select * from {{ target.schema }}.{{ name }}__folded where _is_last) s
   on c.source = s.source {%- for k in contract.key %} and c.`{{ k }}` = s.`{{ k }}`{% endfor %}
when matched and s.valid_to_seq is not null then delete
when matched then update set {% for c in columns %}c.`{{ c }}` = s.`{{ c }}`{{ ', ' if not loop.last }}{% endfor %}
when not matched and s.valid_to_seq is null then insert ({{ columns_of(columns) }}) values ({{ columns_of(columns, 's.') }})
{%- endmacro %}
