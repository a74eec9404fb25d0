"""docs/gold_sql.md shows the SQL that gold runs, as it is sent, with a word on each statement. INLET_WRITE_DOCS=1
writes it anew.
"""

import os
import re
from pathlib import Path

from inlet.commands.run import build_gold
from inlet.gold import generate, small_batches
from tests.silver import write_silver
from tests.streams import Change, seq
from tests.test_generate import project

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gold_sql.md"
CONTRACT = """
table: SHOP.NOTES
name: notes
key: [ID]
columns:
- {name: ID, type: int}
- {name: TEXT, type: string}
"""


def statements(spark, monkeypatch, work) -> list[str]:
    """The SQL that is run while something works."""
    sent, run = [], type(spark).sql

    def sql(self, query, *args, **kwargs):
        sent.append(query)
        return run(self, query, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(type(spark), "sql", sql)
        work()
    return sent


NODE = re.compile(r'^/\* .*"node_id": "model\.inlet\.(\w+)".*\*/\s*')
LINEAGE = (
    "operation, key_changed, change_timestamp, transaction_id, transaction_event_counter, transaction_last_event, "
    "unit_id, unit_offset, batch_id"
)
SHORT = {", ".join(f"`{name}`" for name in LINEAGE.split(", ")): "<lineage>", LINEAGE: "<lineage>"}
NOT_SHOWN = re.compile(r"show tables|set |drop table")
STATEMENTS = [  # what a statement begins with, its heading, what it is for
    (
        r"insert into gold\.notes__before_after",
        "The log: new changes, typed",
        "One row per change. The filter on `batch_id` is in literals, so that Delta prunes files. An image is typed by "
        "one cast of the whole VARIANT; a member that it lacks was not supplied, which `not_supplied` says. `changed` "
        "comes from the source's mask, or from the images where there is none.",
    ),
    (
        r"select source as source, _through_batch_id",
        "Is a batch left over?",
        "What an earlier run staged and did not commit is finished first. Here nothing is.",
    ),
    (
        r"with applied as",
        "The survey: what the new changes ask for",
        "One row per source. It tells which steps the fold needs: here nothing comes late, no key changes, every image "
        "is whole, nothing is truncated; so rewinding, threads, carrying over and wipes are left out of what follows. "
        "`first_1` and `last_1` are the range of the keys, by which `current` is pruned.",
    ),
    (
        r"insert overwrite table gold\.notes__folded",
        "The fold: versions, staged",
        "`entries` are the changes as entries of their keys; `touched` their keys; `base` the live versions of these; "
        "`timeline` all of them, in order; `ordered` and `judged` tell what stands before and after each; `versions` "
        "is what gold will hold. The last SELECT adds how far the batch comes. From here on the batch is fixed: what "
        "follows only copies, and a run that dies is finished by the next one.",
    ),
    (
        r"insert into gold\.notes__past",
        "Past: the versions that have ended",
        "In order, past is only appended to. A batch with late changes replaces from the earliest of them on.",
    ),
    (
        r"delete from gold\.notes__current",
        "Current: the keys that change are taken out",
        "In the range of the keys; of a table above 64 MB, by deletion vectors.",
    ),
    (r"insert into gold\.notes__current", "Current: the versions that are live now", "Those that have no end."),
    (
        r"insert into gold\.applied",
        "The commit",
        "Until this line is written the batch is not in gold: the next run finishes it from `notes__folded`.",
    ),
]
HEAD = """<!-- written by tests/test_gold_sql.py with INLET_WRITE_DOCS=1; a test compares it -->

# The SQL of one table

What a run sends for the table `SHOP.NOTES (ID, TEXT)`, in order, when a second batch brings an UPDATE of one row and a
DELETE of another. The models in `dbt/models/gold/<table>/` name a materialization each; the SQL is made by the macros
in `dbt/macros/`, and a batch that asks for more (late changes, key changes, partial images, TRUNCATE, full loads) gets
more of it. What the steps mean is in [semantics.md](semantics.md); the tables above `fold.sql` and `timeline.sql` say
which entry makes which version. For a batch of few changes Spark is asked for the log's rows alone: DataFusion runs the
fold ([ADR 35](adr/0035-small-tables-are-folded-by-datafusion.md)), and the rows are written in the same order without
Spark ([ADR 29](adr/0029-small-batches-are-written-without-spark.md)). Where current is above 16 MB, Spark is asked
the survey, too, the fold reads the rows of the keys that change from memory, and the DELETE and the INSERT are sent
([ADR 31](adr/0031-a-small-batch-of-a-large-table-reads-what-it-touches.md)).

`<lineage>` stands for the columns that tell which change opened a version:
`{lineage}`.
"""


def test_the_page_shows_what_is_sent(spark, lakehouse, tmp_path, monkeypatch):
    here = project(tmp_path, lakehouse, {"notes": CONTRACT})
    generate.write(here)
    monkeypatch.setattr(small_batches, "is_small", lambda lakehouse, table: False)
    batches = [
        [
            Change("shop", "notes", seq(1), "INSERT", None, {"ID": 1, "TEXT": "a"}),
            Change("shop", "notes", seq(2), "INSERT", None, {"ID": 2, "TEXT": "b"}),
        ],
        [
            Change("shop", "notes", seq(3), "UPDATE", {"ID": 1, "TEXT": "a"}, {"ID": 1, "TEXT": "c"}),
            Change("shop", "notes", seq(4), "DELETE", {"ID": 2, "TEXT": "b"}, None),
        ],
    ]
    sent: list[str] = []
    for number, changes in enumerate(batches, 1):
        write_silver(spark, number, {"notes": {"shop": changes}})
        sent = statements(spark, monkeypatch, lambda: build_gold(here, spark, ["notes"]))
    text, shown = HEAD.format(lineage=LINEAGE), []
    for statement in sent:
        query = NODE.sub("", statement).strip()
        if not NODE.match(statement) or NOT_SHOWN.match(query):
            continue
        known = [(heading, words) for start, heading, words in STATEMENTS if re.match(start, query)]
        assert len(known) == 1, f"the page has no words for this statement: {query}"
        [(heading, words)] = known
        for long, short in SHORT.items():
            query = query.replace(long, short)
        query = re.sub(r"\n\s*\n\s*\n", "\n\n", query)
        text += f"\n## {heading}\n\n{words}\n\n```sql\n{query}\n```\n"
        shown.append(heading)
    assert shown == [heading for _, heading, _ in STATEMENTS]
    if os.environ.get("INLET_WRITE_DOCS"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "INLET_WRITE_DOCS=1 pytest tests/test_gold_sql.py writes the page"
