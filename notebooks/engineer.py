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
# # The engineer: what came in, what was rejected and why, and how to fix it
#
# Feeds come into the demo's lakehouse: a web shop (Qlik messages, and a change table), three depots (Linkexpress) and a
# carrier (a GoldenGate trail), in three batches. The first part of this notebook only reads it. The second part makes a
# small project of its own, breaks a contract on purpose, and repairs it.

# %%
import json
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import inlet
from inlet.change import mask_ordinals
from style import OUTCOME, RED, SOURCE, hex_dump, legend, shell, table, time_axis

PROJECT = os.environ.get("INLET_PROJECT", "..")
spark = inlet.connect(PROJECT)

# %% [markdown]
# ## What came in
#
# `silver.batches` is the ledger: one row for each batch and source. A **record** is what the source wrote; it became a
# change, a repeat of a change that was there already, a control record (a commit, an empty load), or a reject.

# %%
batches = spark.sql("""
    select batch_id as batch, source, num_units as units, num_records as records, num_changes as changes,
           num_repeats as repeats, num_control as control, num_rejected as rejected, num_waiting as waiting
    from silver.batches
    order by batch, source
""")
table(batches)

# %% tags=["plot"]
ledger = batches.toPandas().set_index(["source", "batch"]).sort_index(ascending=[False, True])
places = [n + 0.8 * (n // 4) for n in range(len(ledger))]
figure, axes = plt.subplots(figsize=(9, 3.4))
below = 0 * ledger.changes
for outcome, color in OUTCOME.items():
    axes.bar(places, ledger[outcome], bottom=below, color=color, label=outcome, width=0.85)
    below = below + ledger[outcome]
for place, total, rejected in zip(places, below, ledger.rejected):
    if rejected:
        axes.text(place, total, f"{rejected} rejected", ha="center", va="bottom", size=8, color=RED)
axes.set_xticks(places, [batch for _, batch in ledger.index])
for first, source in zip(places[::4], ledger.index.get_level_values("source").unique()):
    axes.text(first + 1.5, -0.19, source, ha="center", transform=axes.get_xaxis_transform(), weight="bold")
axes.set(title="Records of each batch, and what became of them", ylabel="records")
axes.tick_params(axis="x", length=0)
legend(axes, reverse=True)

# %% [markdown]
# **Is anything lost?** What landed must be what became of it, in records and in bytes. Inlet checks this after each
# batch and stops when it does not hold; here is the sum.

# %%
table(
    spark.sql("""
        select source,
               sum(num_records) as records,
               sum(num_changes + num_repeats + num_control + num_rejected + num_waiting - num_settled) as accounted_for,
               sum(bytes_landed) as bytes,
               sum(bytes_decoded + bytes_repeated + bytes_framing + bytes_rejected + bytes_waiting - bytes_settled)
                 as bytes_accounted_for
        from silver.batches
        group by source
        order by source
    """)
)

# %% [markdown]
# **Did everything come in order?** Each cell is an hour of the source's time, drawn in the batch that brought its
# changes. Batches should be steps of a stair. Two things stick out: in batch 3 the shop and Tokyo bring hours that
# belong to batch 2. They came late, and gold put them where they belong.

# %%
hours = spark.sql("""
    select source, batch_id as batch, to_timestamp(substr(change_seq, 1, 10), 'yyyyMMddHH') as hour, count(*) as changes
    from silver.changes
    group by all
    order by all
""").toPandas()

# %% tags=["plot"]
figure, rows = plt.subplots(3, 1, figsize=(9, 4.6), sharex=True)
for axes, source in zip(rows, SOURCE):
    cells = hours[hours.source == source]
    width = 1 / 24 if source == "shop" else 1 / 8
    strength = (cells.changes / cells.changes.quantile(0.9)).clip(0.35, 1)
    for batch, hour, alpha in zip(cells.batch, cells.hour, strength):
        axes.barh(batch, width, left=hour, height=0.8, color=SOURCE[source], alpha=alpha, lw=0)
    axes.set(yticks=range(1, 4), ylim=(3.6, 0.4), ylabel="batch")
    axes.set_title(source, color=SOURCE[source])
time_axis(rows[-1])

# %% [markdown]
# **Which files?** Of Tokyo's files the one with the ordinal 8 came in batch 3, after number 9; Osaka sent number 7
# twice, with the same bytes (the same sha-256): its changes were counted as repeats and written once.

# %%
table(
    spark.sql("""
        select batch_id as batch, source, regexp_extract(path, '[^/]+$', 0) as file, size_bytes,
               left(sha256, 12) as sha256
        from bronze.files
        where path rlike '_00000[789]' and source like 'depot%'
        order by source, file, batch
    """)
)

# %% [markdown]
# ## What was rejected
#
# Nothing is dropped. A record that cannot be decoded is a row of `silver.rejects`: where it is, what was expected, what
# was found, and its bytes.

# %%
table(
    spark.sql("""
        select batch_id as batch, source, source_table as `table`, column_name as `column`, kind, byte_offset as byte,
               expected, left(found, 12) as found
        from silver.rejects
        order by batch, source, kind
    """)
)

# %% [markdown]
# **The bytes of one.** A price is packed decimal: two digits a byte, the sign in the last half byte (`C` is plus). Here
# the second digit pair is `F4`, and `F` is no digit. Inlet does not guess a price: the record waits, with its bytes,
# until it is replayed.

# %%
reject = spark.sql("select * from silver.rejects where kind = 'bad_digit'").first()
print(f"{reject.unit_id}: {reject.source_table}.{reject.column_name}, record at byte {reject.unit_offset:,}\n")
hex_dump(reject.raw, reject.unit_offset, mark=range(reject.byte_offset, reject.byte_offset + 1))

# %% [markdown]
# The same in a shell, without Spark:

# %%
shell("inlet rejects --kind bad_digit", cwd=PROJECT)

# %% [markdown]
# ## Masks: what was supplied, and what changed
#
# A source often sends only some columns of a row. Two masks say which: bit *n* stands for the *n*-th column of the
# table, beginning with the lowest bit.
#
# - `column_mask`: the columns that the change **supplies**,
# - `change_mask`: the columns that it **changed**.
#
# One real change of `ORDERS`, as the message came:

# %%
change = spark.sql("""
    select c.*, m.value
    from silver.changes c
    join bronze.messages m using (unit_id)
    where source_table = 'ORDERS' and column_mask = X'69' and change_mask = X'68'
      and before:REMARK is not null and variant_get(after, '$.REMARK', 'variant') is not null
    order by c.change_seq
    limit 1
""").first()
message = json.loads(change.value)["message"]
headers = {name: message["headers"][name] for name in ("operation", "changeMask", "columnMask")}
print(json.dumps({**message, "headers": {**headers, "...": "..."}}, indent=2, ensure_ascii=False))

# %%
columns = [
    c["name"]
    for c in json.loads(
        spark.sql("""
    select columns from silver.table_versions where source_table = 'ORDERS' and origin = 'contract' limit 1
""")
        .first()
        .columns
    )
]
before, after = change.before.toPython(), change.after.toPython()
supplied, changed = mask_ordinals(change.column_mask), mask_ordinals(change.change_mask)
print(f"column_mask {change.column_mask.hex().upper()} = {change.column_mask[0]:07b}, read from the right: {supplied}")
print(f"change_mask {change.change_mask.hex().upper()} = {change.change_mask[0]:07b}, read from the right: {changed}")

# %% tags=["plot"]
figure, axes = plt.subplots(figsize=(9, 2.9))
rows = {
    "bit": lambda n, name: (str(n), "white"),
    "column_mask": lambda n, name: ("supplied", "#cfe0f3") if n in supplied else ("", "white"),
    "change_mask": lambda n, name: ("changed", "#f6d9ae") if n in changed else ("", "white"),
    "before": lambda n, name: _value(before, name),
    "after": lambda n, name: _value(after, name),
}


def _value(image, name):
    if name not in image:
        return "not supplied", "#f3f4f6"
    value = image[name]
    return ("NULL", "#fbe3e1") if value is None else (str(value).replace("T", "\n")[:19], "#eaf4ef")


texts = [[cell(n, name)[0] for n, name in enumerate(columns, 1)] for cell in rows.values()]
colors = [[cell(n, name)[1] for n, name in enumerate(columns, 1)] for cell in rows.values()]
axes.axis("off")
grid = axes.table(
    texts, cellColours=colors, colLabels=columns, rowLabels=list(rows), cellLoc="center", loc="center", edges="closed"
)
grid.auto_set_font_size(False)
grid.set_fontsize(8.5)
grid.scale(1, 2.0)
for cell in grid.get_celld().values():
    cell.set_edgecolor("#c9d0d8")
axes.set_title("One change of ORDERS, column by column")

# %% [markdown]
# `REMARK` was supplied and is NULL now: the remark was removed. `TOTAL` was not supplied: the order keeps the one it
# had. Inlet never mixes up the two. Gold folds the change into the row, so each version is complete:

# %%
table(
    spark.sql(f"""
        select valid_from, operation, status, total, remark
        from orders__history
        where order_id = {after["ORDER_ID"]}
        order by valid_from_seq
    """)
)

# %% [markdown]
# ## A contract that is wrong, and how it is fixed
#
# A new project, in a folder of its own: a library that sends its loans as JSON messages, one a line.

# %%
spark.stop()
folder = Path(tempfile.mkdtemp(prefix="inlet-notebook-"))
shell("inlet init library", cwd=folder)
library = folder / "library"

# %%
(library / "pipelines" / "inlet.yml").write_text("""
lakehouse: lakehouse
sources:
  library:
    codec: qlik_json
    from: {transport: lines, path: landing/library/*.jsonl}
    tables: {landing/library/*.jsonl: LIB.LOANS}
""")
CONTRACT = """
table: LIB.LOANS
name: loans
key: [LOAN_ID]
columns:
  - {name: LOAN_ID, type: int, nullable: false}
  - {name: TITLE, type: string}
  - {name: FEE, type: "decimal(4,2)"}
"""
(library / "pipelines" / "tables" / "loans.yml").write_text(CONTRACT)

LOANS = [  # operation, loan, title, fee
    ("INSERT", 1, "Momo", 1.50),
    ("INSERT", 2, "Kokoro", 0.75),
    ("INSERT", 3, "Atlas of the Sky, four volumes", 120.00),
    ("UPDATE", 3, "Atlas of the Sky, four volumes", 130.00),
]
landing = library / "landing" / "library"
landing.mkdir(parents=True)
with (landing / "loans.jsonl").open("w") as file:
    for n, (operation, loan, title, fee) in enumerate(LOANS, 1):
        headers = {
            "operation": operation,
            "changeSequence": f"20260105031500000000000000000000{n:03d}",
            "timestamp": f"2026-01-05T03:15:00.00{n}",
            "transactionId": f"{n:032X}",
            "transactionEventCounter": 1,
            "transactionLastEvent": True,
        }
        print(json.dumps({"data": {"LOAN_ID": loan, "TITLE": title, "FEE": fee}, "headers": headers}), file=file)

# %% [markdown]
# The contract says `decimal(4,2)`: no fee above 99.99. The source made the column wider meanwhile, and told nobody.

# %%
shell("inlet generate", cwd=library)
shell("inlet run", cwd=library, quiet=True)
shell("inlet rejects", cwd=library)

# %% [markdown]
# Two messages were rejected and two came through. What is right is published; what is wrong waits and is named:

# %%
shell("inlet show loans", cwd=library)

# %% [markdown]
# The contract gets a second version: the wider column from the first rejected change on, and under `earlier` the column
# list that changes before it were read by. `inlet replay` decodes the rejected records again, from the bytes that
# bronze keeps, and then builds, checks and publishes as a run does. Nobody has to send anything again.

# %%
WIDER = CONTRACT.replace("decimal(4,2)", "decimal(9,2)").replace("key:", "version: 2\nkey:")
EARLIER = """earlier:
  - version: 1
    until: "20260105031500000000000000000000003"
    columns:
      - {name: LOAN_ID, type: int, nullable: false}
      - {name: TITLE, type: string}
      - {name: FEE, type: "decimal(4,2)"}
"""
(library / "pipelines" / "tables" / "loans.yml").write_text(WIDER + EARLIER)
shell("inlet generate", cwd=library)
shell("inlet replay --kind value_does_not_fit", cwd=library, quiet=True)
shell("inlet show loans", cwd=library)

# %% [markdown]
# The loan is there with the fee of its last change, and its history has both:

# %%
shell("inlet show loans --key 3 --history --format csv", cwd=library)
shell("inlet rejects", cwd=library)
