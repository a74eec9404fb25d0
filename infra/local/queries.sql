-- Which orders are not paid as they were sold, and by how much? (sum of lines, sum of payments; the largest gaps first)
with lines as (
  select source, ORDER_ID, sum(AMOUNT) as sold from order_lines group by source, ORDER_ID
),

paid as (
  select source, ORDER_ID, sum(AMOUNT) as paid from payments group by source, ORDER_ID
)

select o.ORDER_ID, o.ORDER_DATE, o.STATUS, l.sold, p.paid, l.sold - p.paid as missing
from orders o
left join lines l using (source, ORDER_ID)
left join paid p using (source, ORDER_ID)
where o.STATUS <> 'open' and coalesce(l.sold, 0) <> coalesce(p.paid, 0)
order by missing desc, o.ORDER_ID;

-- What did each day bring in, by way of payment, without what was refunded?
select date(PAID_AT) as day, METHOD, count(*) as num_payments, sum(AMOUNT) as revenue
from payments
where not IS_REFUNDED
group by day, METHOD
order by day, METHOD;

-- What did products cost at midnight of 6 January, what do they cost now, and which changed most?
with then as (
  select source, PRODUCT_CODE, NAME, PRICE
  from products_at(timestamp'2026-01-06')
)

select source, PRODUCT_CODE, then.NAME, then.PRICE as price_then, now.PRICE as price_now, now.PRICE - then.PRICE as rise
from then join products now using (source, PRODUCT_CODE)
where now.PRICE <> then.PRICE
order by abs(rise) desc, source, PRODUCT_CODE
limit 20;

-- When a customer got another number, what else changed in the same transaction, from what to what?
with renumbered as (
  select t.source, t.transaction_id, t.first_change_seq, t.last_change_seq
  from customers__before_after c
  join silver.transactions t
    on t.source = c.source and t.transaction_id = c.transaction_id and c.change_seq between t.first_change_seq and t.last_change_seq
  where c.key_changed
  order by t.num_changes desc, c.change_seq
  limit 1
),

changes as (
  select source, transaction_id, change_seq, 'customers' as table_name, operation, changed, to_json(before) as before, to_json(after) as after
  from customers__before_after
  union all
  select source, transaction_id, change_seq, 'orders', operation, changed, to_json(before), to_json(after)
  from orders__before_after
)

select c.change_seq, c.table_name, c.operation, c.changed, c.before, c.after
from renumbered r
join changes c on c.source = r.source and c.transaction_id = r.transaction_id and c.change_seq between r.first_change_seq and r.last_change_seq
order by c.change_seq;
