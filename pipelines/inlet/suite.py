"""Suites of expectations: a list of entries in expectations/{bronze,silver,gold}.yml, as the objects of Great Expectations.

    - table: silver.changes           # or "*__current": one per contract (gold)
      expect: expect_column_values_to_match_regex
      kwargs: {column: change_seq, regex: '^\\d{35}$'}
      severity: error                 # error stops the line, warn only tells
      why: order is by change_seq as text

Words in kwargs: `{batch}` in SQL is the rows being checked; `{key}` is the table's key columns, `{key_column}` makes one
expectation per key column; `{operations}`, `{change_opers}`, `{reject_kinds}` are the lists that the code declares. A
literal brace in SQL is doubled.
"""

import logging
import os
import re
from typing import Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from inlet import change
from inlet.config import Loader
from inlet.errors import REJECT_KINDS, ConfigError

STEPS = ("bronze", "silver", "gold")
LISTS = {
    "{operations}": list(change.OPERATIONS),
    "{change_opers}": list(change.OPERATIONS.values()),
    "{reject_kinds}": list(REJECT_KINDS),
}


class Entry(BaseModel):
    """One expectation as declared."""

    model_config = ConfigDict(extra="forbid")
    table: str
    expect: str
    kwargs: dict = {}
    severity: Literal["error", "warn"]
    why: str


class Expected(NamedTuple):
    """One expectation of one table, words filled in; `place` is where it was declared."""

    table: str
    contract: object           # the Table of a gold table, else None
    entry: Entry
    kwargs: dict
    place: str


def load(project, step: str) -> list[tuple[str, Entry]]:
    """The entries of one suite with their places. Raises: ConfigError, naming file and entry."""
    if step not in STEPS:
        raise ConfigError(f"There is no step {step!r} to check", f"Known steps: {', '.join(STEPS)}")
    path = project.root / "expectations" / f"{step}.yml"
    if not path.is_file():
        raise ConfigError(f"{path} is not there", "Write the step's suite, or an empty list to check nothing")
    try:
        said = yaml.load(path.read_text(encoding="utf-8"), Loader) or []
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", "Mend the line it names") from error
    if not isinstance(said, list):
        raise ConfigError(f"{path}: expected a list of expectations, found {type(said).__name__}", "See inlet/suite.py")
    entries = []
    for n, body in enumerate(said, start=1):
        place = f"{path}: entry {n}"
        if isinstance(body, dict):
            place += f" ({body.get('table')}, {body.get('expect')})"
        try:
            entries.append((place, Entry.model_validate(body)))
        except ValidationError as error:
            text = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'here'}: {p['msg']}" for p in error.errors())
            raise ConfigError(f"{place}: {text}", "An entry says table, expect, kwargs, severity and why") from error
    return entries


def expand(entries, contracts) -> list[Expected]:
    """Entries with a `*` once per contract, those with {key_column} once per key column, words filled in."""
    expected = []
    for place, entry in entries:
        for contract in contracts if entry.table.startswith("*") else [None]:
            table = f"gold.{contract.name}{entry.table[1:]}" if contract else entry.table
            per_column = contract and "{key_column}" in str(entry.kwargs)
            for key_column in contract.key if per_column else [None]:
                kwargs = {name: _filled(value, contract, key_column) for name, value in entry.kwargs.items()}
                expected.append(Expected(table, contract, entry, kwargs, place))
    return expected


def _filled(value, contract, key_column):
    if isinstance(value, list):
        return [_filled(v, contract, key_column) for v in value]
    if not isinstance(value, str):
        return value
    if value in LISTS:
        return LISTS[value]
    if contract:
        value = value.replace("{key_column}", key_column or "").replace("{key}", ", ".join(f"`{k}`" for k in contract.key))
    return value


def build(suite: list[Expected]) -> list:
    """The Great Expectations object of each expectation, in the same order.

    Raises: ConfigError for a name or kwarg it does not know.
    """
    _quiet()
    from great_expectations.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.registry import get_expectation_impl

    severity = {"error": "critical", "warn": "warning"}
    built = []
    for n, expected in enumerate(suite):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", expected.entry.expect).lower()
        try:
            kind = get_expectation_impl(name)
            built.append(kind(**expected.kwargs, severity=severity[expected.entry.severity], notes=expected.entry.why,
                              meta={"n": n}))
        except ExpectationNotFoundError as error:
            raise ConfigError(f"{expected.place}: Great Expectations has no {expected.entry.expect!r}",
                              "Take a name from its gallery of expectations") from error
        except (ValueError, TypeError) as error:       # pydantic 1's ValidationError is a ValueError
            text = "; ".join(f"{p['loc'][0]}: {p['msg']}" for p in error.errors()) if hasattr(error, "errors") else str(error)
            raise ConfigError(f"{expected.place}: kwargs do not fit: {text}", "Mend the entry") from error
    return built


def _quiet() -> None:
    """Import Great Expectations so that it neither calls home nor talks."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"       # before its import: no call leaves this machine
    import great_expectations.data_context.types.base  # noqa: F401  sets its own level when imported

    for name in ("great_expectations", "great_expectations.data_context.types.base", "py4j"):
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)      # what cannot run is told in its result
