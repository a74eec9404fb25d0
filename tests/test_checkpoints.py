"""Where sources with checkpoints are public up to, told by what silver holds. Rows at checkpoints, and from bytes on:
tests/test_pipeline.py."""

from dataclasses import replace

import pytest

from inlet import config
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.publish import at_checkpoints, hold
from inlet.publish.point import Point, SourcePoint, TablePoint
from inlet.silver import transactions
from inlet.source import Source
from tests.examples import ins
from tests.silver import write_silver
from tests.streams import Change, seq

PUBLISH_AT = {
    "within": "checkpoint",
    "open": "checkpoint",
    "late": "checkpoint",
    "never": "checkpoint",
    "usual": "transaction",
}


def project(lakehouse: str = "", **publish_at: str) -> Project:
    sources = {
        name: Source(name=name, codec="linkexpress_journal", path="nowhere", publish_at=at)
        for name, at in (PUBLISH_AT | publish_at).items()
    }
    return Project(root=lakehouse or "/", lakehouse=lakehouse, sources=sources, tables={})


def transaction(id_: str, *places: int, is_whole: bool = True) -> list[Change]:
    """Changes of one transaction; one that is not whole lacks its last event."""
    return [
        replace(ins(place, place), transaction_id=id_, counter=n, last=is_whole and n == len(places))
        for n, place in enumerate(places, 1)
    ]


def bring(spark, batch_id: int, changes: dict[str, list[Change]], checkpoints: list[tuple[str, int, str]]) -> None:
    """One batch in silver. In: changes by source; (source, place, name) of its checkpoints."""

    def add_events() -> None:
        rows = ", ".join(
            f"""('{source}', '{seq(place)}', 'checkpoint', '{{"name": "{name}"}}', {batch_id})"""
            for source, place, name in checkpoints
        )
        spark.sql(f"insert into silver.control_events (source, change_seq, kind, detail, batch_id) values {rows}")

    write_silver(spark, batch_id, {"items": changes}, before_ledger=add_events)
    transactions.update(spark, f"batch_id = {batch_id}")


def next_point(made: Project, spark, last: Point) -> tuple[Point, set[str]]:
    """As `publish.run` asks for it when gold has all of silver."""
    rows = spark.sql("select source, max(change_seq) as seq from silver.changes group by source").collect()
    ends = {row.source: row.seq for row in rows}
    sources = {name: SourcePoint(end) for name, end in ends.items()}
    point = Point(last.number + 1, sources, {"items": TablePoint(through=ends)})
    holds = hold.holds_of(made, spark, last)
    for name, before in hold.last_before(spark, holds).items():
        point.source(name).held, point.source(name).seq = holds[name].why, max(before, last.points.get(name, ""))
    return point, at_checkpoints.move(made, spark, last, point, holds)


def test_a_point_is_the_newest_checkpoint_at_which_no_transaction_is_open(spark, lakehouse):
    made = project(lakehouse)
    bring(
        spark,
        1,
        {
            "within": [*transaction("A", 10, 11), *transaction("D", 40, 45)],
            "open": [*transaction("A", 10, 11), *transaction("E", 50, is_whole=False)],
            "late": transaction("A", 10, 11),
            "never": transaction("A", 10, 11),
            "usual": [*transaction("A", 10, 11), *transaction("B", 20, is_whole=False)],
        },
        [
            ("within", 15, "DAY"),
            ("within", 42, "NIGHT"),
            ("open", 5, "DAY"),
            ("open", 20, "NIGHT"),
            ("open", 60, "DAY"),
            ("late", 15, "DAY"),
            ("usual", 15, "DAY"),
        ],
    )
    first, late = next_point(made, spark, Point())
    places = {"within": seq(15), "open": seq(20), "late": seq(15), "never": "", "usual": seq(15)}
    assert (first.points, late) == (places, set())
    assert first.held == {
        "within": f"the next checkpoint; changes up to {seq(45)} wait for it; NIGHT, at {seq(42)}, lies within "
        "transaction D (sources.*.publish_at)",
        "open": f"transaction E lacks events; 1 change there, the first at {seq(50)} "
        "(sources.*.open_transaction_minutes says how long)",
        "never": f"the next checkpoint; changes up to {seq(11)} wait for it; there was none yet (sources.*.publish_at)",
        "usual": f"transaction B lacks events; 1 change there, the first at {seq(20)} "
        "(sources.*.open_transaction_minutes says how long)",
    }
    rest = [replace(change, counter=2, last=True) for change in transaction("E", 51)]
    bring(
        spark,
        2,
        {"within": transaction("G", 70, 71), "open": rest, "late": transaction("F", 12, 18)},
        [("within", 65, "DAY")],
    )
    second, late = next_point(made, spark, first)
    assert second.points == places | {"within": seq(65), "open": seq(60)}
    assert late == {"late"}  # half of F would be seen
    assert second.held == {name: first.held[name] for name in ("never", "usual")} | {
        "within": f"the next checkpoint; changes up to {seq(71)} wait for it; the last one is DAY, at {seq(65)} "
        "(sources.*.publish_at)",
        "late": f"the next checkpoint; changes up to {seq(18)} wait for it; transaction F came late and lies around "
        "the last point (sources.*.publish_at)",
    }
    bring(spark, 3, {"late": []}, [("late", 18 + 1, "NIGHT")])
    third, late = next_point(made, spark, second)
    assert (third.points["late"], late) == (seq(19), set()) and "late" not in third.held


def test_a_source_that_shall_wait_for_no_checkpoint_any_more_is_published():
    waits = f"{at_checkpoints.WAITS}; changes wait for it"
    assert at_checkpoints.is_over(project(never="transaction"), "never", waits)
    assert not at_checkpoints.is_over(project(), "never", waits)
    assert not at_checkpoints.is_over(project(never="transaction"), "never", "transaction A lacks events")


@pytest.mark.parametrize(
    ("codec", "publish_at", "message"),
    [
        (
            "qlik_json",
            "checkpoint",
            "sources.shop.publish_at is checkpoint, and qlik_json has none.*linkexpress_journal",
        ),
        ("linkexpress_journal", "noon", "sources.shop: publish_at: .*'transaction' or 'checkpoint'"),
    ],
)
def test_a_format_without_checkpoints_is_not_published_at_them(tmp_path, codec, publish_at, message):
    (tmp_path / "pipelines").mkdir()
    text = f"sources: {{shop: {{codec: {codec}, from: landing, publish_at: {publish_at}, options: {{}}}}}}"
    (tmp_path / "pipelines" / "inlet.yml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        config.load(tmp_path)
