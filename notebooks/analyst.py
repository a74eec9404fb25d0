# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The analyst: what is true now, what was true then, what changed and when
#
# A web shop (customers, orders, order lines, payments) and two depots (products, stock, warehouses) send their changes;
# Inlet keeps their tables. We ask them with SQL:
#
# - `orders`: the rows that are there now,
# - `orders__history`: every version of every row, with the time from and until which it held,
# - `orders__before_after`: every change, with the row before and after,
# - `orders_at(time)`: the rows as they were at a time.
#
# The same goes for each table. All times are UTC.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd

import inlet
from style import BLUE, GREEN, GREY, LIGHT, ORANGE, SERIES, STATUS, legend, table, time_axis

PROJECT = os.environ.get("INLET_PROJECT", "..")
spark = inlet.connect(PROJECT, pin="walkthrough")

# %% [markdown]
# `pin` keeps one **point**: from here on every query sees all tables as they are at this point, even when a run
# publishes newer rows meanwhile. A pin stays until it is dropped, so next month's query can use it again.

# %%
TABLES = ["customers", "orders", "order_lines", "payments", "products", "stock", "warehouses"]
table(
    spark.sql(
        " union all ".join(
            f"""
            select '{name}' as `table`, count_if(valid_to_seq is null) as rows_now, count(*) as versions,
                   max(valid_from) as newest_change
            from {name}__history
            """
            for name in TABLES
        )
    )
)

# %% [markdown]
# ## Now
#
# **How many orders are there, and what are they worth?**

# %%
now = spark.sql("""
    select status, count(*) as orders, sum(total) as total
    from orders
    group by status
    order by orders desc
""")
table(now)

# %% [markdown]
# **Which orders were not paid as they were sold?** We compare the lines of an order with its payments. Both come from
# the same point, so an order that is being changed at this moment cannot look wrong.

# %%
table(
    spark.sql("""
        with lines as (
          select order_id, sum(amount) as sold from order_lines group by order_id
        ),

        paid as (
          select order_id, sum(amount) as paid from payments group by order_id
        )

        select order_id, order_date, status, sold, paid, sold - paid as missing
        from orders
        left join lines using (order_id)
        left join paid using (order_id)
        where status <> 'open' and coalesce(sold, 0) <> coalesce(paid, 0)
        order by missing desc, order_id
    """),
    limit=6,
)

# %% [markdown]
# ## As of a time
#
# **How many orders were in each status on 5 January at 18:00, and a day later?** `orders_at(time)` is the table as it
# was.

# %%
table(
    spark.sql("""
        with then as (
          select status, count(*) as orders from orders_at(timestamp'2026-01-05 18:00') group by status
        ),

        a_day_later as (
          select status, count(*) as orders from orders_at(timestamp'2026-01-06 18:00') group by status
        )

        select status, then.orders as `5 January, 18:00`, a_day_later.orders as `6 January, 18:00`
        from then join a_day_later using (status)
        order by status
    """)
)

# %% [markdown]
# **And at every hour?** The history answers it for all times at once: a version counts from `valid_from` until
# `valid_to`. The dotted lines are the two times of the table above.

# %%
by_hour = spark.sql("""
    with hours as (
      select explode(sequence(timestamp'2026-01-05 02:00', timestamp'2026-01-08 05:00', interval 1 hour)) as hour
    )

    select hour, status, count(*) as orders
    from hours
    join orders__history on valid_from <= hour and (valid_to > hour or valid_to is null)
    group by hour, status
""").toPandas()

# %% tags=["plot"]
orders = by_hour.pivot(index="hour", columns="status", values="orders").fillna(0)[list(STATUS)]
figure, axes = plt.subplots()
axes.stackplot(orders.index, orders.T, labels=list(STATUS), colors=list(STATUS.values()), edgecolor="white", lw=0.4)
for time in ("2026-01-05 18:00", "2026-01-06 18:00"):
    axes.axvline(pd.Timestamp(time), color="black", lw=1, ls=":")
axes.set(title="Orders by status, hour by hour", ylabel="orders", xlim=(orders.index[0], orders.index[-1]))
time_axis(axes)
legend(axes, reverse=True)

# %% [markdown]
# ## What changed, and when
#
# **The life of one order.** The customer changed the lines again and again before paying; the order's total follows
# each time. At 02:06 the first line got another number: line 1 ends, and line 3 goes on with its values.

# %%
ORDER = 10000001173
lives = {
    name: spark.sql(f"""
        select *, coalesce(valid_to, timestamp'2026-01-06 19:00') as until
        from {name}__history
        where order_id = {ORDER}
        order by valid_from_seq
    """).toPandas()
    for name in ("orders", "order_lines", "payments")
}

# %% tags=["plot"]
figure, axes = plt.subplots(figsize=(9, 3.4))
lanes = ["order"] + [f"line {n}" for n in sorted(set(lives["order_lines"].line_no))]
lanes += [f"payment {n}" for n in lives["payments"].payment_no]


def draw(lane, version, color, text, ink="black"):
    length = version.until - version.valid_from
    axes.barh(lane, length, left=version.valid_from, color=color, height=0.66, ec="white")
    if length.total_seconds() > 40 * 60:
        axes.text(version.valid_from + length / 2, lane, text, ha="center", va="center", size=9, color=ink)


for version in lives["orders"].itertuples():
    ink = "black" if version.status == "open" else "white"
    draw("order", version, STATUS[version.status], f"{version.total:.0f}", ink)
for version in lives["order_lines"].itertuples():
    draw(f"line {version.line_no}", version, "#e9c48f", f"{version.quantity} x")
for version in lives["payments"].itertuples():
    draw(f"payment {version.payment_no}", version, LIGHT, f"{version.amount:.0f} by {version.method}")
axes.set_yticks(range(len(lanes)), lanes)
axes.invert_yaxis()
axes.grid(axis="x")
axes.grid(visible=False, axis="y")
time_axis(axes, hours=3)
axes.margins(x=0)
axes.set_title(f"Order {ORDER}: its total, its lines (pieces) and its payments, over time")
colors = {status: plt.Rectangle((0, 0), 1, 1, color=STATUS[status]) for status in ("open", "paid", "shipped")}
axes.legend(colors.values(), colors.keys(), loc="lower left")

# %% [markdown]
# **The same as changes:** what was changed, from what to what. A NULL in `total` means that this change did not supply
# it; `changed` says which columns it changed.

# %%
table(
    spark.sql(f"""
        select change_timestamp as at, operation, array_except(changed, array('updated_at')) as changed,
               before.status as status_before, after.status as status_after,
               before.total as total_before, after.total as total_after
        from orders__before_after
        where after.order_id = {ORDER}
        order by change_seq desc
    """),
    limit=6,
)

# %% [markdown]
# **How many changes come in an hour, and of which tables?** The shop's, without the first load of all rows.

# %%
busy = spark.sql(
    " union all ".join(
        f"""
        select '{name}' as `table`, date_trunc('hour', change_timestamp) as hour, count(*) as changes
        from {name}__before_after
        where source = 'shop' and change_timestamp is not null
        group by hour
        """
        for name in ("order_lines", "orders", "payments", "customers")
    )
).toPandas()

# %% tags=["plot"]
per_hour = busy.pivot(index="hour", columns="table", values="changes").fillna(0).sort_index()
figure, axes = plt.subplots()
below = 0 * per_hour.iloc[:, 0]
for color, name in zip(SERIES, ("order_lines", "orders", "payments", "customers")):
    axes.bar(per_hour.index, per_hour[name], bottom=below, width=1 / 26, label=name, color=color)
    below = below + per_hour[name]
axes.set(title="Changes an hour", ylabel="changes")
axes.margins(x=0.01)
time_axis(axes)
legend(axes)

# %% [markdown]
# ## The depots
#
# **How much of a product was where?** A depot sends its changes in an extract every four hours, so a row has one value
# from one extract to the next. (What changed twice within an extract is in the history, too; such versions begin and
# end at the same time.) On 6 January most pieces went from TK03 to TK02.

# %%
stock = spark.sql("""
    select warehouse_id, quantity, valid_from
    from stock__history
    where product_code = 'TK000243' and (valid_to > valid_from or valid_to is null)
    order by warehouse_id, valid_from_seq
""").toPandas()

# %% tags=["plot"]
figure, axes = plt.subplots()
end = stock.valid_from.max().ceil("2h")
for (warehouse, levels), color in zip(stock.groupby("warehouse_id"), (BLUE, ORANGE, GREEN)):
    times, pieces = [*levels.valid_from, end], [*levels.quantity, levels.quantity.iloc[-1]]
    axes.step(times, pieces, where="post", color=color, lw=1.8, label=warehouse)
axes.set(title="Product TK000243: pieces in each warehouse", ylabel="pieces", ylim=(0, None))
time_axis(axes, hours=6)
legend(axes)

# %% [markdown]
# **Which prices moved most since midnight of 6 January?** `products_at(time)` joined with `products`.

# %%
prices = spark.sql("""
    select source, product_code, then.price as price_then, now.price as price_now, now.price - then.price as difference
    from products_at(timestamp'2026-01-06') as then
    join products as now using (source, product_code)
    where now.price <> then.price
    order by abs(difference) desc, source, product_code
    limit 12
""")
table(prices, limit=5)

# %% tags=["plot"]
moved = prices.toPandas().astype({"price_then": float, "price_now": float})[::-1]
figure, axes = plt.subplots(figsize=(9, 3.6))
colors = [GREEN if row.price_now > row.price_then else ORANGE for row in moved.itertuples()]
axes.hlines(moved.product_code, moved.price_then, moved.price_now, color=colors, lw=3, alpha=0.5)
axes.scatter(moved.price_then, moved.product_code, color="white", edgecolor=GREY, s=40, zorder=3, label="then")
axes.scatter(moved.price_now, moved.product_code, color=colors, s=40, zorder=3, label="now")
axes.set(title="Prices then (empty) and now (filled): green rose, orange fell", xlabel="price")
axes.grid(axis="x")
axes.grid(visible=False, axis="y")

# %% [markdown]
# ## Several tables at one point
#
# **Is every order's total the sum of its lines?** Orders and lines are two tables; the shop writes both in one
# transaction, and the published point never cuts a transaction in two. So the answer is exact.

# %%
table(
    spark.sql("""
        select count(*) as orders, count_if(total = coalesce(lines, 0)) as total_is_sum_of_lines,
               count_if(total <> coalesce(lines, 0)) as differ
        from orders
        left join (select order_id, sum(amount) as lines from order_lines group by order_id) using (order_id)
    """)
)

# %% [markdown]
# **What did each day bring in?** Payments that were not refunded, by method.

# %%
revenue = spark.sql("""
    select date(paid_at) as day, method, sum(amount) as revenue
    from payments
    where not is_refunded
    group by day, method
    order by day, method
""").toPandas()

# %% tags=["plot"]
by_day = revenue.astype({"revenue": float}).pivot(index="day", columns="method", values="revenue") / 1000
figure, axes = plt.subplots()
for n, (method, color) in enumerate(zip(by_day, SERIES)):
    places = [day + (n - 1.5) * 0.2 for day in range(len(by_day))]
    bars = axes.bar(places, by_day[method], width=0.19, color=color, label=method)
    axes.bar_label(bars, fmt="%.0f", padding=2, size=8, color="#4a5560")
axes.set_xticks(range(len(by_day)), [f"{day:%d %b}" for day in by_day.index])
axes.set(title="Revenue by day and method", ylabel="thousand")
axes.tick_params(axis="x", length=0)
legend(axes)

# %% [markdown]
# ## The point itself
#
# The pin is a database like any other: `inlet sql --database walkthrough "..."` asks it, `inlet pin` lists it. We need
# it no more and drop it, as `inlet unpin walkthrough` does. (No row is lost: a pin is only views.)

# %%
spark.sql("use public")
spark.sql("drop database walkthrough cascade")
spark.catalog.databaseExists("walkthrough")
