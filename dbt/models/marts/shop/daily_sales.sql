-- one row per source and day with an order or a payment: what came in, and what was still open when the day ended
with payments as (
  select source, date(paid_at) as day, amount from {{ source('public', 'payments') }} where not is_refunded
),

order_versions as (
  select source, order_id, order_date, status, total, valid_from, valid_to from {{ source('public', 'orders__history') }}
),

paid as (
  select source, day, count(*) as num_payments, sum(amount) as revenue from payments group by source, day
),

placed as (
  select source, order_date as day, count(distinct order_id) as num_orders from order_versions group by source, order_date
),

days as (
  select source, day from paid
  union
  select source, day from placed
),

-- the versions that held at midnight; of the last day, those that hold at the published point
open_then as (
  select d.source, d.day, count(*) as num_open, sum(v.total) as open_total
  from days d
  join order_versions v
    on v.source = d.source
    and v.valid_from < timestamp(d.day + 1)
    and coalesce(v.valid_to >= timestamp(d.day + 1), true)
  where v.status = 'open'
  group by d.source, d.day
),

known as (
  select source, min(valid_from) as since from order_versions group by source
)

select
  source,
  d.day,
  coalesce(p.revenue, 0) as revenue,
  coalesce(p.num_payments, 0) as num_payments,
  coalesce(o.num_orders, 0) as num_orders,
  if(timestamp(d.day + 1) > k.since, coalesce(t.num_open, 0), null) as num_open,
  if(timestamp(d.day + 1) > k.since, coalesce(t.open_total, 0), null) as open_total
from days d
left join paid p using (source, day)
left join placed o using (source, day)
left join open_then t using (source, day)
left join known k using (source)
