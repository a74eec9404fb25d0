"""Suites of expectations: a list of entries in expectations/{bronze,silver,gold}.yml, as the objects of Great
Expectations.

    - table: silver.changes           # or "*__current": one per contract (gold)
      expect: expect_column_values_to_match_regex
      kwargs: {column: change_seq, regex: '^\\d{35}$'}
      severity: error                 # error stops the line, warn only tells
      why: order is by change_seq as text

Words in kwargs: `{batch}` in SQL is the rows being checked; `{key}` is the table's key columns, `{key_column}` makes
one expectation per key column; `{source}`, `{valid_from_seq}` and the like are columns of ours, which a table may call
otherwise (Table.ours); `{operations}`, `{change_opers}`, `{reject_kinds}` are the lists that the code declares. A
literal brace in SQL is doubled.
"""

import logging
import os
import re
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from inlet import change
from inlet.config import Loader, Project
from inlet.errors import REJECT_KINDS, ConfigError
from inlet.sql import name as quoted
from inlet.table import OURS, Table

STEPS = ("bronze", "silver", "gold")
LISTS = {
    "{operations}": list(change.OPERATIONS),
    "{change_opers}": sorted(set(change.OPERATIONS.values())),
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
    contract: Table | None  # of a gold table
    entry: Entry
    kwargs: dict
    place: str


def load(project: Project, step: str) -> list[tuple[str, Entry]]:
    """The entries of one suite with their places. Raises: ConfigError, naming file and entry."""
    if step not in STEPS:
        raise ConfigError(f"There is no step {step!r} to check", f"Known steps: {', '.join(STEPS)}")
    path = project.root / "expectations" / f"{step}.yml"
    if not path.is_file():
        raise ConfigError(f"{path} is not there", "Write the step's suite, or an empty list to check nothing")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader) or []
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", "Fix the line it names") from error
    if not isinstance(content, list):
        raise ConfigError(
            f"{path}: expected a list of expectations, found {type(content).__name__}", "See inlet/checks/suite.py"
        )
    entries = []
    for n, body in enumerate(content, start=1):
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
    """Entries with a `*` once per contract, those with {key_column} once per key column, words filled in. A table
    without a key has a log alone.
    """
    expected = []
    for place, entry in entries:
        for contract in contracts if entry.table.startswith("*") else [None]:
            if contract and not contract.key and (entry.table != "*__before_after" or "{key" in str(entry.kwargs)):
                continue
            table = f"gold.{contract.name}{entry.table[1:]}" if contract else entry.table
            per_column = contract and "{key_column}" in str(entry.kwargs)
            for key_column in contract.key if per_column else [None]:
                kwargs = {
                    word: _filled(value, contract, key_column, is_sql=word == "unexpected_rows_query")
                    for word, value in entry.kwargs.items()
                }
                expected.append(Expected(table, contract, entry, kwargs, place))
    return expected


def _filled(value, contract, key_column, is_sql=False):
    if isinstance(value, list):
        return [_filled(v, contract, key_column, is_sql) for v in value]
    if not isinstance(value, str):
        return value
    if value in LISTS:
        return LISTS[value]
    if contract:
        words = {"{key_column}": key_column or "", "{key}": ", ".join(map(quoted, contract.key))}
        words = {
            word: content.replace("{", "{{").replace("}", "}}") if is_sql else content
            for word, content in words.items()
        } | {f"{{{n}}}": contract.our(n) for n in OURS}
        return re.sub("|".join(map(re.escape, words)), lambda match: words[match[0]], value)
    return value


def build(suite: list[Expected]) -> list:
    """The Great Expectations object of each expectation, in the same order.

    Raises: ConfigError for a name or kwarg it does not know.
    """
    quiet()
    from great_expectations.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.registry import get_expectation_impl

    severity = {"error": "critical", "warn": "warning"}
    built = []
    for n, expected in enumerate(suite):
        expect = re.sub(r"(?<!^)(?=[A-Z])", "_", expected.entry.expect).lower()
        try:
            kind: Any = get_expectation_impl(expect)
            kwargs = {
                word: shown(value)
                if word == "column" and expected.contract and value in expected.contract.key
                else value
                for word, value in expected.kwargs.items()
            }
            built.append(
                kind(**kwargs, severity=severity[expected.entry.severity], notes=expected.entry.why, meta={"n": n})
            )
        except ExpectationNotFoundError as error:
            raise ConfigError(
                f"{expected.place}: Great Expectations has no {expected.entry.expect!r}",
                "Take a name from its gallery of expectations",
            ) from error
        except (ValueError, TypeError) as error:  # pydantic 1's ValidationError is a ValueError
            text = (
                "; ".join(f"{p['loc'][0]}: {p['msg']}" for p in error.errors())
                if hasattr(error, "errors")
                else str(error)
            )
            raise ConfigError(f"{expected.place}: kwargs do not fit: {text}", "Fix the entry") from error
    return built


def shown(column: str) -> str:
    """A column by the name under which Great Expectations is shown it: it asks Spark for names without quotes, so they
    hold no dot and no backquote.
    """
    return column.translate({ord("."): "·", ord("`"): "´"})


def quiet() -> None:
    """Import Great Expectations so that it neither calls home nor talks."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # before its import: no call leaves this machine
    import great_expectations.data_context.types.base  # noqa: F401  sets its own level when imported

    for logger in ("great_expectations", "great_expectations.data_context.types.base", "py4j"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # what cannot run is told in its result
