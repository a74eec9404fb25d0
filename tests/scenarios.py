"""Scenarios that share what costs: each is a generator with assertions of its own, and all take each step together.

With `Scenarios` each has a source of its own in one project, and a step is a batch:

    scenario = Scenarios()

    @scenario(SHOP)
    def a_change_that_comes_twice_is_a_repeat(feed):
        feed.send(change, change)
        account = yield
        assert account.num_repeats == 1

    @pytest.fixture(scope="module")
    def outcomes(spark, lakehouse, tmp_path_factory):
        return scenario.go(spark, lakehouse, tmp_path_factory.mktemp("scenarios"))

    @pytest.mark.parametrize("name", scenario.names)
    def test_what_holds(outcomes, name):
        check(outcomes[name])
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inlet import bronze, config, silver
from inlet.commands import replay
from tests import projects, stored
from tests.encode import qlik

Outcomes = dict[str, Exception | None]  # by scenario: what it has failed with, if at all


def go(scenarios: dict[str, Generator], step: Callable[[dict[str, Any]], dict[str, Any]]) -> Outcomes:
    """Run scenarios until each has ended or failed. In: a step, from what scenarios have yielded to what each of them
    is given for it."""
    outcomes: Outcomes = {}
    given = dict.fromkeys(scenarios)
    while len(outcomes) < len(scenarios):
        asked = {}
        for name in [name for name in scenarios if name not in outcomes]:
            try:
                asked[name] = scenarios[name].send(given[name])
            except StopIteration:
                outcomes[name] = None
            except Exception as failure:
                outcomes[name] = failure
        if asked:
            given = step(asked)
    return outcomes


def check(outcome: Exception | None) -> None:
    if outcome:
        raise outcome


@dataclass
class Feed:
    """The source of a scenario, whose steps may change its options and contracts."""

    name: str
    spark: Any
    lakehouse: str
    landing: Path
    source: dict
    tables: list[dict]
    project: Callable[[], config.Project]  # as all scenarios have it now

    def send(self, *values: bytes, offset: int = 0, topic: str = "items", **more) -> None:
        """Deliver messages as a file."""
        qlik.write_parquet(
            qlik.rows([*values], topic, offset=offset, **more), self.landing / f"{topic}{offset}.parquet"
        )

    def rows(self, table: str, *columns: str, rest: str = "") -> list[tuple]:
        """Columns of its rows in a table of silver."""
        return stored.rows(self.lakehouse, f"silver.{table}", self.name, *columns, rest=rest)

    def rejects(self) -> list[dict]:
        """Its rejects that are not resolved."""
        return replay.unresolved(self.project(), self.name)

    def chosen(self, kind: str | None = None, unit: str | None = None) -> list[dict]:
        """As `inlet replay` takes them."""
        return replay.chosen(self.project(), self.name, kind, None, unit)


@dataclass
class Scenarios:
    """Each with a source that shares its batches with the others. A scenario yields None once files are delivered, or
    the rejects to decode again; it is given the account of that batch."""

    steps: dict[str, tuple[Callable, dict, list[dict]]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*self.steps]

    def __call__(self, source: dict, *tables: dict, name: str = "", transport: str = "") -> Callable:
        """In: the source, without where its files are; the contracts that it alone has."""

        def add(steps: Callable) -> Callable:
            path = f"landing/{name or steps.__name__}"
            brought = {"transport": transport, "path": path} if transport else path
            self.steps[name or steps.__name__] = steps, source | {"from": brought}, [*tables]
            return steps

        return add

    def go(self, spark, lakehouse: str, root: Path, tables=(projects.ITEMS,)) -> Outcomes:
        """In: the contracts that all have."""

        def project() -> config.Project:
            own = [table for feed in feeds.values() for table in feed.tables]
            return projects.make(root, {f.name: f.source for f in feeds.values()}, [*tables, *own], lakehouse)

        def take_batches(asked: dict[str, list[dict] | None]) -> dict:
            now, accounts = project(), {}
            if delivered := [now.sources[name] for name, rejects in asked.items() if rejects is None]:
                new = bronze.plan_batch(now, delivered, bronze.History(now))
                bronze.land(now, spark, new)
                accounts |= silver.run(now, spark, new.batch_id)
            if again := [reject for rejects in asked.values() for reject in rejects or ()]:
                accounts |= silver.run(now, spark, replay.plan(now, spark, again))
            return {name: accounts.get(name) for name in asked}

        feeds = {
            name: Feed(name, spark, lakehouse, root / "landing" / name, source, tables, project)
            for name, (_, source, tables) in self.steps.items()
        }
        for feed in feeds.values():
            feed.landing.mkdir(parents=True)
        return go({name: steps(feeds[name]) for name, (steps, *_) in self.steps.items()}, take_batches)
