{# Changes that did not find what they ask for: one row per change and kind. -#}
{% macro anomalies(name) -%}
{%- set log, history = ref(name ~ '__before_after'), ref(name ~ '__history') -%}
{%- if execute -%}
{%- set key = contract(name).key -%}
with deletes as (
  select * from {{ log }} where operation = 'DELETE'
)

select source, valid_from_seq as change_seq, conflict as kind, unit_id, unit_offset, batch_id from {{ history }} where conflict is not null
union all
select source, change_seq, 'mask_contradicts_images', unit_id, unit_offset, batch_id from {{ log }} where size(mask_conflicts) > 0
union all
select d.source, d.change_seq, 'delete_without_row', d.unit_id, d.unit_offset, d.batch_id
from deletes d left anti join {{ history }} p
  on p.source = d.source and p.valid_from_seq < d.change_seq and coalesce(p.valid_to_seq, '~') >= d.change_seq {%- for k in key %} and p.`{{ k }}` = coalesce(d.before.`{{ k }}`, d.after.`{{ k }}`){% endfor %}
{%- endif -%}
{%- endmacro %}
