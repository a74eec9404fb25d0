"""A bank for tests: accounts in two tables, transfers between them, so that the sum over both never changes at a
boundary.

Run as a program it is a process of tests/test_bank.py: `write`, which is killed, brings batch after batch into the
ledger, gold and the public views, and goes on wherever an earlier one was killed; `read` asks the public views for the
sum without pause.
"""

import random
import sys
from decimal import Decimal
from pathlib import Path

import yaml

from tests.encode import qlik
from tests.streams import COLUMNS, Change, seq
from tests.test_generate import ITEMS, project

TABLES = ("checking", "savings")
NUM_ACCOUNTS, BALANCE = 20, Decimal("100.00")
TOTAL = len(TABLES) * NUM_ACCOUNTS * BALANCE
CONTRACTS = {name: ITEMS.replace("ITEMS", name.upper()).replace("items", name) for name in TABLES}


def changes(num_transfers: int, seed: int = 1) -> list[Change]:
    """The opening of all accounts in one transaction, then transfers of one or two steps, each a transaction."""
    rng, balances, made = random.Random(seed), {}, []

    def change(table, op, account, transaction, counter, is_last):
        place = len(made) + 1
        made.append(
            Change(
                "bank",
                f"SHOP.{table.upper()}",
                seq(place),
                op,
                after={
                    "REGION": "north",
                    "ITEM": account,
                    "PRICE": balances[table, account],
                    "NAME": None,
                    "MADE": None,
                    "PHOTO": None,
                },
                transaction_id=f"T{transaction}",
                counter=counter,
                last=is_last,
            )
        )

    accounts = [(table, account) for table in TABLES for account in range(NUM_ACCOUNTS)]
    for n, account in enumerate(accounts, 1):
        balances[account] = BALANCE
        change(account[0], "INSERT", account[1], 0, n, n == len(accounts))
    for transfer in range(1, num_transfers + 1):
        steps = [
            (rng.choice(accounts[:NUM_ACCOUNTS]), rng.choice(accounts[NUM_ACCOUNTS:])) for _ in range(rng.randint(1, 2))
        ]
        for n, (one, other) in enumerate(steps):
            amount = Decimal(rng.randint(-5000, 5000)) / 100
            for account, moved, counter in ((one, -amount, 2 * n + 1), (other, amount, 2 * n + 2)):
                balances[account] += moved
                change(account[0], "UPDATE", account[1], transfer, counter, counter == 2 * len(steps))
    return made


def batches(made: list[Change], num: int, seed: int = 2) -> list[list[Change]]:
    """Cut anywhere behind the opening, also within transactions; of some transactions the second half comes a batch
    late. (Were a whole one late, nobody could know: balances that count it would be there, and its own would not.)"""
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(len(TABLES) * NUM_ACCOUNTS + 1, len(made)), num - 1))
    halved = {c.transaction_id for c in made if rng.random() < 0.05} - {"T0"}
    found: list[list[Change]] = [[] for _ in range(num)]
    for place, one in enumerate(made):
        on_time = sum(cut <= place for cut in cuts)
        found[min(on_time + (one.transaction_id in halved and one.counter % 2 == 0), num - 1)].append(one)
    return found


def by_table(batch: list[Change]) -> dict:
    return {name: {"bank": [c for c in batch if c.table == f"SHOP.{name.upper()}"]} for name in TABLES}


def bring(spark, here, batch_id: int, batch: list[Change]) -> None:
    """One batch into silver and its ledger. A batch that stands in the ledger is left alone; one that was begun is
    begun anew.
    """
    from inlet.silver import transactions
    from tests.silver import write_silver

    if spark.sql(f"select 1 from silver.batches where batch_id = {batch_id}").isEmpty():
        spark.sql(f"delete from silver.changes where batch_id = {batch_id}")
        if not spark.sql(f"select 1 from silver.transactions where batch_id = {batch_id}").isEmpty():
            transactions.withdraw(spark, f"batch_id = {batch_id}")
        write_silver(
            spark, batch_id, by_table(batch), before_ledger=lambda: transactions.update(spark, f"batch_id = {batch_id}")
        )


def write(root: Path, lakehouse: str, num_transfers: int, num_batches: int) -> None:
    """The writer: every batch, in order. Says which step begins."""
    from inlet import config, gold, publish
    from inlet.lake.spark import session, small_query_settings

    def begins(step: str) -> None:
        print(step, flush=True)

    here, spark = config.load(root), session(lakehouse)
    with small_query_settings(spark, is_small=True):
        begins("looking")
        done = {row.batch_id for row in spark.sql("select distinct batch_id from silver.batches").collect()}
        for batch_id, batch in enumerate([[], *batches(changes(num_transfers), num_batches)], -1):
            if batch_id in done:
                continue
            if batch:  # the first goes on where an earlier writer was killed
                begins("silver")
                bring(spark, here, batch_id, batch)
            if gold.pending(here):
                begins("gold")
                gold.run(here, spark)
            if publish.pending(here):
                begins("publish")
                publish.run(here, spark)


SUM = (
    "select sum(price) from (select price from public.checking where source = 'bank' union all select price from "
    "public.savings where source = 'bank')"
)


def read(lakehouse: str) -> None:
    """The reader: a line for each sum, for ever. The views are there before it starts."""
    from inlet.lake.spark import session, small_query_settings

    spark = session(lakehouse)
    with small_query_settings(spark, is_small=True):
        while True:
            print(spark.sql(SUM).first()[0], flush=True)


SOURCE = {
    "bank": {
        "codec": "qlik_json",
        "from": "landing/bank/*.parquet",
        "tables": {name: f"SHOP.{name.upper()}" for name in TABLES},
    }
}


def make(root: Path, lakehouse: str, sources: dict | None = None):
    """A project of the two tables; without a source its changes are written into silver."""
    from inlet import config
    from inlet.gold import generate

    here = project(root, lakehouse, CONTRACTS)
    if sources:
        (root / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"lakehouse": lakehouse, "sources": sources}))
        here = config.load(root)
    generate.write(here)
    return here


def deliver(root: Path, number: int, batch: list[Change], offsets: dict[str, int]) -> None:
    """One batch as a file of messages, a topic for each table, there from one moment to the next. In: the next offset
    of each topic, counted on.
    """
    rows = []
    for name in TABLES:
        values = [
            qlik.value(
                {
                    "operation": c.op,
                    "change_seq": c.seq,
                    "after": c.after,
                    "transaction_id": c.transaction_id,
                    "transaction_event_counter": c.counter,
                    "transaction_last_event": c.last,
                },
                COLUMNS,
            )
            for c in batch
            if c.table == f"SHOP.{name.upper()}"
        ]
        rows += qlik.rows(values, name, offset=offsets[name])
        offsets[name] += len(values)
    landing = root / "landing" / "bank"
    landing.mkdir(parents=True, exist_ok=True)
    qlik.write_parquet(rows, landing / f"{number}.part")
    (landing / f"{number}.part").rename(landing / f"{number}.parquet")


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read(sys.argv[2])
    else:
        write(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
