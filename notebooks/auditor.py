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
# # The auditor: from a number to the bytes it came from
#
# A report says: *on 6 January customers paid 173,640.82 by card*. Which bytes did this number come from, and are they
# the bytes that were delivered? We go back step by step, and at the end compute the number again from the delivered
# files, without Inlet.

# %%
import hashlib
import json
import os
from decimal import Decimal
from pathlib import Path

import matplotlib.pyplot as plt
import pyarrow.parquet as pq

import inlet
from style import BLUE, GREEN, GREY, LIGHT, hex_dump, shell, table

PROJECT = Path(os.environ.get("INLET_PROJECT", ".."))
spark = inlet.connect(PROJECT, pin="audit")

# %% [markdown]
# The pin `audit` keeps the published point, so that every step below looks at the same rows.
#
# ## 1. The number

# %%
QUESTION = "date(paid_at) = date'2026-01-06' and method = 'card' and not is_refunded"
number = spark.sql(f"select sum(amount) as paid, count(*) as payments from payments where {QUESTION}")
table(number)

# %% [markdown]
# ## 2. The versions of rows that it adds up
#
# Each row of `payments` says which change opened this version of it (`valid_from_seq`), and in which unit of bronze
# that change is.

# %%
versions = spark.sql(f"select * from payments where {QUESTION}")
versions.createOrReplaceTempView("versions")
table(
    versions.select("order_id", "payment_no", "amount", "operation", "valid_from_seq").orderBy("valid_from_seq"),
    limit=5,
)

# %% [markdown]
# ## 3. The changes that its values came from
#
# A later change may have left `amount` open, and the row kept the value of an earlier one. So for each row we take the
# last change up to this version that supplied the amount.

# %%
changes = spark.sql("""
    select v.order_id, v.payment_no, v.amount, max_by(c.change_seq, c.change_seq) as change_seq
    from versions v
    join payments__before_after c
      on c.source = v.source and c.after.order_id = v.order_id and c.after.payment_no = v.payment_no
      and c.change_seq <= v.valid_from_seq and not array_contains(c.not_supplied, 'amount')
    group by v.order_id, v.payment_no, v.amount
""")
changes.createOrReplaceTempView("changes_of_number")
table(
    spark.sql("""
    select operation, count(*) as changes, sum(amount) as amount, min(c.change_seq) as first, max(c.change_seq) as last
    from changes_of_number
    join silver.changes c on c.source = 'shop' and c.change_seq = changes_of_number.change_seq
    group by operation
""")
)

# %% [markdown]
# ## 4. The units in bronze, with their bytes
#
# `silver.changes` names the unit of each change and the bytes of its record within. Here a unit is one message. Bronze
# keeps its bytes as they came, with their SHA-256.

# %%
messages = spark.sql("""
    select n.order_id, n.payment_no, n.amount, n.change_seq, m.unit_id, m.topic, m.partition, m.`offset`, m.path,
           m.sha256, m.value
    from changes_of_number n
    join silver.changes c on c.source = 'shop' and c.change_seq = n.change_seq
    join bronze.messages m on m.unit_id = c.unit_id
    order by n.change_seq
""")
evidence = messages.collect()
table(messages.drop("value", "topic", "partition", "offset", "order_id", "payment_no"), limit=4)

# %% [markdown]
# One of these messages, byte by byte as it lies in bronze:

# %%
first = evidence[0]
print(f"{first.unit_id}, {len(first.value)} bytes, SHA-256 {hashlib.sha256(first.value).hexdigest()}\n")
hex_dump(
    bytes(first.value[:160]), mark=range((at := first.value.index(b"AMOUNT")) + 8, at + 8 + len(str(first.amount)))
)
print("     ...")

# %% [markdown]
# ## 5. The delivered files
#
# The files lie where they were delivered. We compare them with what bronze recorded when it landed them, and each
# message with the row of the file that brought it (`topic`, `partition`, `offset`).

# %%
landed = {row.path: row for row in spark.sql("select * from bronze.files where source = 'shop'").collect()}
files, places = [], {}
for path in sorted({row.path for row in evidence}):
    data = (PROJECT / path).read_bytes()
    rows = pq.read_table(PROJECT / path, columns=["topic", "partition", "offset", "value"]).to_pylist()
    delivered = {(row["topic"], row["partition"], row["offset"]): (n, row["value"]) for n, row in enumerate(rows)}
    mine = [row for row in evidence if row.path == path]
    found = [delivered[row.topic, row.partition, row.offset] for row in mine]
    places[path] = (len(rows), [n for n, _ in found])
    files.append(
        {
            "file": Path(path).name,
            "sha256 of the file": hashlib.sha256(data).hexdigest()[:16],
            "as landed": landed[path].sha256[:16],
            "same file": hashlib.sha256(data).hexdigest() == landed[path].sha256,
            "messages": len(mine),
            "same bytes": sum(bytes(row.value) == value for row, (_, value) in zip(mine, found)),
        }
    )
table(files)

# %% tags=["plot"]
figure, axes = plt.subplots(figsize=(9, 1.0 + 0.5 * len(places)))
for n, (num_rows, ordinals) in enumerate(places.values()):
    axes.barh(n, num_rows, color=LIGHT, height=0.6)
    axes.vlines(ordinals, n - 0.3, n + 0.3, color=BLUE, lw=1)
axes.set_yticks(range(len(places)), [Path(path).name for path in places])
axes.invert_yaxis()
axes.set(title="Where the number's messages lie in the delivered files", xlabel="message of the file")
axes.grid(visible=False)

# %% [markdown]
# ## 6. The number again, from the files alone
#
# We read the amounts out of the delivered bytes with nothing but Python's JSON reader, and add them up.

# %%
recomputed, checked = Decimal(0), 0
for row in evidence:
    payment = json.loads(row.value, parse_float=Decimal)
    payment = payment.get("message", payment)["data"]
    recomputed += Decimal(payment["AMOUNT"])
    checked += hashlib.sha256(row.value).hexdigest() == row.sha256
in_gold = number.first()
table(
    [
        {"": "in gold", "paid": in_gold.paid, "payments": in_gold.payments, "SHA-256 as recorded": None},
        {"": "from the bytes", "paid": recomputed, "payments": len(evidence), "SHA-256 as recorded": checked},
    ]
)

# %% tags=["plot"]
steps = [
    ("gold", f"{in_gold.paid:,}"),
    ("versions", f"{in_gold.payments} rows"),
    ("changes", f"{changes.count()} changes"),
    ("bronze", f"{len(evidence)} messages"),
    ("delivered", f"{len(files)} files"),
    ("added up again", f"{recomputed:,}"),
]
figure, axes = plt.subplots(figsize=(9, 1.4))
for n, (name, text) in enumerate(steps):
    is_end = n in (0, len(steps) - 1)
    box = {"boxstyle": "round,pad=0.55", "fc": "#eaf4ef" if is_end else "white", "ec": GREEN if is_end else GREY}
    axes.text(n, 0.45, text, ha="center", va="center", bbox=box, size=9.5)
    axes.text(n, 0.95, name, ha="center", va="center", size=9, color="#4a5560")
    if n:
        axes.annotate("", (n - 0.40, 0.45), (n - 0.60, 0.45), arrowprops={"arrowstyle": "->", "color": GREY})
axes.set(xlim=(-0.5, len(steps) - 0.5), ylim=(0, 1.1))
axes.axis("off")

# %% [markdown]
# **Is something missing from the number?** A record that was rejected is in no sum. Of `PAYMENTS` none was, and at the
# published point no transaction of the shop is half there.

# %%
table(
    spark.sql("""
    select (select count(*) from silver.rejects where source_table = 'PAYMENTS' or unit_id like 'shop/shop.payments/%')
             as rejects_of_payments,
           (select count(*) from silver.transactions where source = 'shop' and state <> 'complete')
             as transactions_not_complete
""")
)

# %% [markdown]
# ## A number from binary records
#
# The same way for a depot: how many pieces of product TK000243 are in Tokyo? A unit here is a block of an extract file;
# a change names the bytes of its record within.

# %%
pieces = spark.sql("""
    select s.warehouse_id, s.quantity, s.valid_from_seq, b.path, b.file_offset + c.unit_offset as byte,
           c.unit_length as length,
           substr(b.bytes, cast(c.unit_offset + 1 as int), cast(c.unit_length as int)) as record
    from stock s
    join silver.changes c on c.source = s.source and c.change_seq = s.valid_from_seq
    join bronze.blocks b on b.unit_id = c.unit_id
    where s.product_code = 'TK000243'
    order by s.warehouse_id
""")
records = pieces.collect()
table(pieces.drop("record"))

# %% [markdown]
# We open the delivered files at these bytes. `QUANTITY` is a four-byte integer, its lowest byte first, behind the two
# codes (in brackets).

# %%
total = 0
for row in records:
    with (PROJECT / row.path).open("rb") as file:
        file.seek(row.byte)
        delivered = file.read(row.length)
    assert delivered == bytes(row.record)
    at = delivered.index(row.warehouse_id.encode()) + 4 + 2
    quantity = int.from_bytes(delivered[at : at + 4], "little")
    total += quantity
    print(f"{Path(row.path).name}: {row.warehouse_id} has {quantity} pieces")
    hex_dump(delivered, row.byte, mark=range(row.byte + at, row.byte + at + 4))
    print()
print(f"together {total}, in gold {sum(row.quantity for row in records)}")

# %% [markdown]
# ## The other way: from a file to what became of it

# %%
shell("inlet status --file landing/shop/messages_0003.parquet", cwd=PROJECT)

# %% [markdown]
# The audit's pin could stay for as long as it is needed. Here we drop it.

# %%
spark.sql("use public")
spark.sql("drop database audit cascade")
shell("inlet show payments --limit 1 --format json", cwd=PROJECT)
