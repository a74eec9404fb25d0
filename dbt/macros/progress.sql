{# Where a table stands, one row per source that is behind the ledger or has a staged batch:
   {source, state: behind|staged, applied_batch_id, applied_change_seq, through_batch_id}. One query. -#}
{% macro progress(name, has_staging) -%}
  {%- set query -%}
with applied as (
  select source, max(through_batch_id) as through_batch_id, max(through_change_seq) as through_change_seq
  from {{ source('gold_state', 'applied') }} where table_name = '{{ name }}' group by source
),

ledger as (
  select source, max(batch_id) as through_batch_id from {{ source('silver', 'batches') }} group by source
)

select l.source, 'behind' as state, coalesce(a.through_batch_id, -1) as applied_batch_id,
       a.through_change_seq as applied_change_seq, l.through_batch_id
from ledger l left join applied a on a.source = l.source
where a.source is null or l.through_batch_id > a.through_batch_id
    {%- if has_staging %}
union all
select s.source, 'staged', coalesce(a.through_batch_id, -1), a.through_change_seq, s._through_batch_id
from gold.{{ name }}__folded s left join applied a on a.source = s.source
where s._through_batch_id is not null and (a.source is null or s._through_batch_id > a.through_batch_id)
    {%- endif %}
order by source
  {%- endset -%}
  {{ return(run_query(query) | list) }}
{%- endmacro %}
