{# Move current to the staged batch: take away every key it touches, and put back those that live. Repeatable. Two
   commits (ADR 8): who reads current itself between them misses the rows of the batch; the public views stand on older
   versions. DELETE with EXISTS is faster, and a setting of Delta's has to allow it. In: the batch, none of it when it
   is healed; the staged rows, if they are not read from the table; whether current has a row of a key. -#}
{% macro apply_current(name, batch={}, rows=none, has_touched=true) -%}
  {%- set contract = contract(name) -%}
  {%- set current = target.schema ~ '.' ~ name ~ '__current' -%}
  {%- set staged = rows or target.schema ~ '.' ~ name ~ '__folded' -%}
  {%- set columns, our = version_columns(contract, is_current=true), ours(contract) -%}
  {%- if has_touched -%}
  {% call statement('take_from_current') %}
  {%- if run_context().get('has_delete_exists', true) %}
delete from {{ current }} c
where {{ batch.key_range or 'true' }}
  and exists (select {{ broadcast(batch, 's') }} 1 from {{ staged }} s
              where s.{{ our._is_last }} and {{ has_key_of('s', 'c', contract) }})
  {%- else %}
merge into {{ current }} c
using (select * from {{ staged }} where {{ our._is_last }}) s
   on {{ has_key_of('s', 'c', contract) }}
when matched then delete
  {%- endif %}
  {% endcall %}
  {%- endif -%}
  {% call statement('put_into_current') %}
insert into {{ current }} ({{ columns_of(columns) }})
select {{ columns_of(columns) }} from {{ staged }} where {{ our._is_last }} and {{ our.valid_to_seq }} is null
  {% endcall %}
{%- endmacro %}


{# A hint for what is as small as its batch, where Spark cannot know. -#}
{% macro broadcast(batch, relation) -%}
{{ '/*+ broadcast(%s) */' % relation
   if batch and batch.num_changes <= 100000 and not batch.has_wipe and not batch.has_rewind }}
{%- endmacro %}


{# Two rows are of one key. -#}
{% macro has_key_of(one, other, contract) -%}
{%- set source = ours(contract).source -%}
{{ one }}.{{ source }} = {{ other }}.{{ source }}
{%- for k in contract.key %} and {{ one }}.{{ identifier(k) }} = {{ other }}.{{ identifier(k) }}{% endfor %}
{%- endmacro %}
