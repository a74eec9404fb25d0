{# Changes that did not find what they ask for: one row per change and kind. -#}
{% macro anomalies(name) -%}
{%- set log, history = ref(name ~ '__before_after'), ref(name ~ '__history') -%}
{%- if execute -%}
{%- set key, our = contract(name).key, ours(contract(name)) -%}
with deletes as (
  select * from {{ log }} where operation = 'DELETE'
)

select {{ unprefixed(our, ['source']) }}, {{ our.valid_from_seq }} as change_seq, {{ our.conflict }} as kind,
       {{ unprefixed(our, ['unit_id', 'unit_offset', 'batch_id']) }}
from {{ history }} where {{ our.conflict }} is not null
union all
select source, change_seq, 'mask_contradicts_images', unit_id, unit_offset, batch_id
from {{ log }} where size(mask_conflicts) > 0
union all
select d.source, d.change_seq, 'delete_without_row', d.unit_id, d.unit_offset, d.batch_id
from deletes d left anti join {{ history }} p
  on p.{{ our.source }} = d.source
     and p.{{ our.valid_from_seq }} < d.change_seq and coalesce(p.{{ our.valid_to_seq }}, '~') >= d.change_seq
     {%- for k in key %}
     and p.{{ identifier(k) }} = coalesce(d.before.{{ identifier(k) }}, d.after.{{ identifier(k) }})
     {%- endfor %}
{%- endif -%}
{%- endmacro %}
