"""The SQL of `public.<t>__live`: live rows with the changes in silver that gold has not taken yet, folded when the view
is read.

It stands on one Delta version of `<t>__current`, and on the batches of the ledger after it. The two are literals of a
view of their own, which is all that a batch alters: Spark analyses the fold in five times as long.

Changes that follow what gold holds are folded key by key, as tests/reference.py says. Some cannot be folded without the
log: a change that comes late, a key change, the end of a full load, a dropped column that is added again. From there on
the changes of their source wait for gold; `is_held` says so in each of its rows, and what is shown is the source's
state just before. So a live row is never a guess; a run that brings the table's gold up to silver shows the rest.
"""

import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import StrictUndefined, Template

from inlet import lake
from inlet.config import Project
from inlet.gold.generate import LINEAGE
from inlet.lake import engine
from inlet.lake.spark import side_by_side
from inlet.publish import views
from inlet.publish.fixed_views import same_transaction
from inlet.sql import literal
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONTO_ROW = "('insert_over_row', 'key_change_onto_row', 'update_without_row_onto_row')"  # as the macro `onto_row`
TRANSACTION = ("transaction_id", "transaction_event_counter", "transaction_last_event")
UPDATES = "('UPDATE', 'UPSERT')"
WIPES = "('TRUNCATE', 'EMPTY_LOAD')"
NO_TRANSACTION = (
    "cast(null as struct<transaction_id: string, transaction_event_counter: bigint, transaction_last_event: boolean>)"
)
NO_IMAGE = "cast(map() as map<string,variant>)"
QUALITY = ("source", "valid_from_seq", "is_complete", "not_supplied", "conflict")
TEMPLATE = Template((Path(__file__).parent / "live_view.sql").read_text(), undefined=StrictUndefined)
COMMENT = (
    "Live rows of {table}, with the changes in silver that gold has not taken yet. Not tied to the published point, "
    "and open transactions count. is_held: changes of this source wait for gold, because a late change, a key change, "
    "the end of a full load or a dropped column that is added again is among them; the rows are those just before it."
)
BASE_COMMENT = "What {view} stands on: rows of one Delta version of current, and the last batch that they hold."
MAX_TEXT = 32_000  # what Hive's own catalog takes of a view's text, with some room (ADR 5)


def write(project: Project, spark: "SparkSession", tables: list[tuple[Table, int]]) -> None:
    """Move the tables' views to where gold is, and write those that are not what the contract says. In: tables, each
    with the last batch of the ledger that has it; gold holds all of it.
    """
    made = [(t, batch) for t, batch in tables if lake.exists(project.lakehouse_path(), f"gold.{t.name}__current")]
    side_by_side(lambda of: _write(project, spark, *of), made)


def _write(project: Project, spark: "SparkSession", table: Table, through_batch_id: int) -> None:
    view, shape = f"public.{table.name}__live", zlib.crc32(query(table, "").encode())
    base = _base(table, shape)
    version = lake.version(project.lakehouse_path(), f"gold.{table.name}__current")
    body = (
        "select struct(*) as row, cast(null as bigint) as through_batch_id\n"
        f"from gold.{table.name}__current version as of {version}\nunion all\nselect null, {through_batch_id}L"
    )
    title = f"create view {base}\ncomment {literal(BASE_COMMENT.format(view=view))}\nas\n"
    views.write(spark, views.View(base, title, body, exists=True))
    written = _written_shape(spark, view)
    if written == f"{shape}":
        return
    text = _text(spark, table, base)
    if written is not None:  # CREATE OR REPLACE would drop it for a moment
        spark.sql(f"alter view {view} as\n{text}")
        if written.isdecimal():
            spark.sql(f"drop view if exists {_base(table, int(written))}")
        spark.sql(f"alter view {view} set tblproperties ('inlet.shape' = '{shape}')")
    else:
        comment = literal(COMMENT.format(table=table.table))
        spark.sql(f"create view {view}\ncomment {comment}\ntblproperties ('inlet.shape' = '{shape}')\nas\n{text}")


def _written_shape(spark: "SparkSession", view: str) -> str | None:
    """The number of the text that a view was written with; None where it does not exist. Asked for its property first,
    because most often it exists."""
    from pyspark.errors import AnalysisException

    try:
        return spark.sql(f"show tblproperties {view} ('inlet.shape')").collect()[0].value
    except AnalysisException:
        if engine.has_table(spark, view):
            raise
        return None


def _base(table: Table, shape: int) -> str:
    """The view that a live view of this text reads. One of another text may lack its columns."""
    return f"public._{table.name}__live_{shape}"


def _text(spark: "SparkSession", table: Table, base: str) -> str:
    """A live view's SQL, as long as the catalog takes it."""
    text = query(table, base)
    if len(text) > MAX_TEXT:
        text = query(table, base, _row_function(spark, table))
    if len(text) > MAX_TEXT:  # many columns of a hex encoding
        why = f"{table.table} has too many columns for a live view in this catalog; read public.{table.name}"
        return f"select raise_error({literal(why)}) as nothing"
    return text


def _row_function(spark: "SparkSession", table: Table) -> str:
    """A function that types an image. It takes the list of columns out of a wide table's view, for of a function the
    catalog takes any length. Its name has a number of the types, so that a view of before keeps its own."""
    type_ = _row_type(table)
    name = f"public.{table.name}__live_row_{zlib.crc32(type_.encode())}"
    spark.sql(
        f"create function if not exists {name}(image map<string,variant>) returns {type_} "
        f"comment {literal(f'An image of {table.table}, typed.')} return cast(to_variant_object(image) as {type_})"
    )
    return name


def _row_type(table: Table) -> str:
    return (
        f"struct<{', '.join(f'{quoted(c.gold_name)}: ' + ('string' if c.encoding else c.type) for c in table.columns)}>"
    )


def query(table: Table, base: str, row_function: str | None = None) -> str:
    """The view's SQL: live_view.sql, filled in. An image is a map from column to VARIANT, so that columns are named few
    times: the text of a wide table's view must stay short. In: the view that it stands on, and a function that types an
    image.
    """
    our, encodings = table.our, {c.gold_name: c.encoding for c in table.columns if c.encoding}
    types = {c.gold_name: c.type for c in table.columns}
    prefixes = ("_" * n + "key_" for n in count(1))
    prefix = next(p for p in prefixes if not any(name.startswith(p) for name in types))
    keys = [{"column": column, "name": f"{prefix}{n}"} for n, column in enumerate(table.gold_key)]

    def typed(image: str, name: str) -> str:
        value = f"{image}[{literal(name)}]"
        return f"to_binary(cast({value} as string), 'hex')" if name in encodings else f"cast({value} as {types[name]})"

    def same_key(one: str, two: str) -> str:
        return "".join(f" and {one}.{key['name']} = {two}.{key['name']}" for key in keys)

    def transaction(prefix: str) -> str:
        names = (our(name) if prefix else name for name in TRANSACTION)
        return f"struct({', '.join(f'{prefix}{name} as {as_}' for name, as_ in zip(names, TRANSACTION))})"

    as_sent = ", ".join(f"hex(c.{quoted(n)}) as {quoted(n)}" if n in encodings else f"c.{quoted(n)}" for n in types)
    if row_function and not encodings:
        others = (*QUALITY, *(n for n, _, _ in LINEAGE))
        as_sent = f"c.* except ({', '.join([*map(our, others), *(key['name'] for key in keys)])})"
    hexed = ", ".join(f"to_binary(is.{quoted(n)}, 'hex')" if n in encodings else f"is.{quoted(n)}" for n in types)
    return TEMPLATE.render(
        our=our,
        keys=keys,
        key_list=", ".join(key["name"] for key in keys),
        quoted=quoted,
        typed=typed,
        same_key=same_key,
        transaction=transaction,
        same_transaction=same_transaction,
        table_name=literal(table.name),
        tables=", ".join(map(literal, table.names)),
        base=base,
        through=f"(select through_batch_id from {base} where through_batch_id is not null)",
        before=_image(table, "before"),
        after=_image(table, "after"),
        lost=_lost(table),
        changes=_changes(table),
        as_sent=as_sent,
        as_row=f"{row_function}(row.image)"
        if row_function
        else f"cast(to_variant_object(row.image) as {_row_type(table)})",
        columns=hexed if encodings else "is.*",
        own_columns=", ".join(our(n) for n in ("conflict", *(n for n, _, _ in LINEAGE))),
        no_image=NO_IMAGE,
        no_transaction=NO_TRANSACTION,
        onto_row=ONTO_ROW,
        updates=UPDATES,
        wipes=WIPES,
        added_again=list(table.added_again),
    )


def _image(table: Table, image: str) -> str:
    """An image as a map from gold's names to VARIANT: what was supplied, and null for what the change's version did not
    have.
    """
    return _by_version(table, lambda version: _image_of(table, version, image))


def _lost(table: Table) -> str:
    """Gold's names of the columns that a change has given a value which the source could not send."""
    lost = "map_keys(map_filter(column_states, (name, state) -> state = 'missing'))"
    return f"transform(coalesce({lost}, array()), name -> {_gold_name(table)})"


def _by_version(table: Table, sql_of: Callable[[Table], str]) -> str:
    """SQL for the columns of a change as its version of the contract has them."""
    found = [(version.version, sql_of(version)) for version in table.versions]
    return (
        found[0][1]
        if len(found) == 1
        else "case table_version "
        + " ".join(f"when {number} then {sql}" for number, sql in found)
        + " else raise_error('a change of another version than the contract has: run `inlet run`') end"
    )


def _renames(table: Table, version: Table) -> dict[str, str]:
    """Members of images -> gold's names, where these are not the members in lower case."""
    return {
        column.name: name
        for name, column in table.columns_in(version).items()
        if column and (column.gold_name != name or not column.name.isascii())
    }


def _gold_name(table: Table) -> str:
    """SQL for gold's name of the member `name` of an image."""
    has_any = any(_renames(table, version) for version in table.versions)
    return "coalesce(renames[name], lower(name))" if has_any else "lower(name)"


def _changes(table: Table) -> str:
    """SQL for silver's changes, with `renames` of their version; once, for names make a view's text long. It stands
    before the filter, so changes of other tables, and of versions that this one has not, get none.
    """
    maps = {
        version.version: f"map({', '.join(f'{literal(a)}, {literal(b)}' for a, b in names.items())})"
        for version in table.versions
        if (names := _renames(table, version))
    }
    if not maps:
        return "silver.changes"
    cases = " ".join(f"when {number} then {sql}" for number, sql in maps.items())
    renames = f"case table_version {cases} end" if len(table.versions) > 1 else next(iter(maps.values()))
    return f"(select *, {renames} as renames from silver.changes)"


def _image_of(table: Table, version: Table, image: str) -> str:
    then, name = table.columns_in(version), _gold_name(table)
    absent = ", ".join(f"{literal(n)}, parse_json('null')" for n, column in then.items() if column is None)
    sent = (
        f"transform_keys(map_filter(coalesce(cast({image} as map<string,variant>), {NO_IMAGE}), (name, value) -> "
        f"(column_states[name] in ('missing', 'lob_incomplete')) is not true), (name, value) -> {name})"
    )
    return f"if({image} is null, {NO_IMAGE}, map_concat({sent}, map({absent})))" if absent else sent
