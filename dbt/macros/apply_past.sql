{# Write the staged closed versions. A batch in order only adds: append. A rewound batch, or one that may have been
   written before a crash, replaces by (source, key, valid_from_seq), which a version keeps for ever. In: seq from which
   past may change. #}
{% macro apply_past(name, is_replacing, rewind_seq=none) -%}
  {%- set contract = contract(name) -%}
  {%- set staged = target.schema ~ '.' ~ name ~ '__folded' -%}
  {%- set columns, our = version_columns(contract), ours(contract) -%}
  {%- if not is_replacing -%}
insert into {{ target.schema }}.{{ name }}__past ({{ columns_of(columns) }})
select {{ columns_of(columns) }} from {{ staged }} where {{ our.valid_to_seq }} is not null
  {%- else -%}
merge into {{ target.schema }}.{{ name }}__past p
using (select * from {{ staged }} where {{ our.valid_from_seq }} is not null) s
   on p.{{ our.source }} = s.{{ our.source }} and p.{{ our.valid_from_seq }} = s.{{ our.valid_from_seq }}
     {%- for k in contract.key %} and p.{{ identifier(k) }} = s.{{ identifier(k) }}{% endfor %}
  {%- if rewind_seq %} and p.{{ our.valid_to_seq }} >= '{{ rewind_seq }}'{% endif %}
when matched and s.{{ our.valid_to_seq }} is null then delete
when matched then update set
  {% for c in columns %}p.{{ identifier(c) }} = s.{{ identifier(c) }}{{ ', ' if not loop.last }}{% endfor %}
when not matched and s.{{ our.valid_to_seq }} is not null then insert ({{ columns_of(columns) }})
   values ({{ columns_of(columns, 's.') }})
  {%- endif -%}
{%- endmacro %}
