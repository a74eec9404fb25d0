"""The SQL of `public.<t>__live`: live rows with the changes in silver that gold has not taken yet, folded when the view is read.

It stands on one Delta version of `<t>__current`, and on the batches of the ledger behind it. Changes that follow what gold holds are
folded key by key, as tests/reference.py says. Some cannot be folded without the log: a change that comes late, a key change, the end of
a full load. From there on the changes of their source wait for gold; `is_held` says so in each of its rows, and what is shown is the
source's state just before. So a live row is never a guess; a run that brings the table's gold up to silver shows the rest.
"""

import zlib
from itertools import count

from inlet import lake
from inlet.config import Project
from inlet.gold.generate import LINEAGE
from inlet.publish.views import same_transaction
from inlet.sql import literal
from inlet.sql import name as quoted
from inlet.table import Table

ONTO_ROW = "('insert_over_row', 'key_change_onto_row', 'update_without_row_onto_row')"          # as the macro `onto_row`
TRANSACTION = ("transaction_id", "transaction_event_counter", "transaction_last_event")
WIPES = "('TRUNCATE', 'EMPTY_LOAD')"
NO_TRANSACTION = "cast(null as struct<transaction_id: string, transaction_event_counter: bigint, transaction_last_event: boolean>)"
NO_IMAGE = "cast(map() as map<string,variant>)"
COMMENT = ("Live rows of {table}, with the changes in silver that gold has not taken yet. Not tied to the published point, and open transactions "
           "count. is_held: changes of this source wait for gold, for a late change, a key change or the end of a full load is among them; the "
           "rows are those just before it.")
MAX_TEXT = 32_000              # what Hive's own catalog takes of a view's text, with some room (ADR 5)


def write(project: Project, spark, table: Table, through_batch_id: int) -> None:
    """Write a table's view, where it is not what the contract says and where gold is. In: the last batch of the ledger that has the
    table; gold holds all of it."""
    if not lake.exists(project.lakehouse_path(), f"gold.{table.name}__current"):
        return
    view, sql = f"public.{table.name}__live", query(table, lake.version(project.lakehouse_path(), f"gold.{table.name}__current"), through_batch_id)
    shape = zlib.crc32(sql.encode())
    is_there = spark.catalog.tableExists(view)
    if not is_there or f"{shape}" not in str(spark.sql(f"show tblproperties {view} ('inlet.shape')").collect()):
        if len(sql) > MAX_TEXT:
            sql = query(table, lake.version(project.lakehouse_path(), f"gold.{table.name}__current"), through_batch_id, _row_function(spark, table))
        if len(sql) > MAX_TEXT:                # many columns of a hex encoding
            sql = f"select raise_error({literal(f'{table.table} has too many columns for a live view in this catalog; read public.{table.name}')}) as nothing"
        if is_there:                           # CREATE OR REPLACE would drop it for a moment
            spark.sql(f"alter view {view} as\n{sql}")
            spark.sql(f"alter view {view} set tblproperties ('inlet.shape' = '{shape}')")
        else:
            spark.sql(f"create view {view}\ncomment {literal(COMMENT.format(table=table.table))}\ntblproperties ('inlet.shape' = '{shape}')\nas\n{sql}")


def _row_function(spark, table: Table) -> str:
    """A function that types an image. It takes the list of columns out of a wide table's view, for of a function the catalog takes any
    length. Its name has a number of the types, so that a view of before keeps its own."""
    type_ = _row_type(table)
    name = f"public.{table.name}__live_row_{zlib.crc32(type_.encode())}"
    spark.sql(f"create function if not exists {name}(image map<string,variant>) returns {type_} "
              f"comment {literal(f'An image of {table.table}, typed.')} return cast(to_variant_object(image) as {type_})")
    return name


def _row_type(table: Table) -> str:
    return f"struct<{', '.join(f'{quoted(c.gold_name)}: ' + ('string' if c.encoding else c.type) for c in table.columns)}>"


def query(table: Table, version: int, through_batch_id: int, row_function: str | None = None) -> str:
    """Live rows: source, the table's columns, valid_from_seq, is_complete, not_supplied, is_pending, is_held. An image is a map from column
    to VARIANT, so that columns are named few times: the text of a wide table's view must stay short. In: a function that types an image."""
    columns = [(c.gold_name, c.type, c.encoding) for c in table.columns]
    keys, our = table.gold_key, table.our
    mark = next(mark for n in count(1) if (mark := "_" * n + "key_") and not any(name.startswith(mark) for name, _, _ in columns))
    transaction = "struct({0} as transaction_id, {1} as transaction_event_counter, {2} as transaction_last_event)"
    unpacked = f"{row_function}(row.image)" if row_function else f"cast(to_variant_object(row.image) as {_row_type(table)})"
    as_sent = ", ".join(f"hex(c.{quoted(name)}) as {quoted(name)}" if encoding else f"c.{quoted(name)}" for name, _, encoding in columns)
    if row_function and not any(encoding for _, _, encoding in columns):
        others = [*map(our, ("source", "valid_from_seq", "is_complete", "not_supplied", "conflict")), *(our(n) for n, _, _ in LINEAGE),
                  *(f"{mark}{n}" for n in range(len(keys)))]
        as_sent = f"c.* except ({', '.join(others)})"
    hexed = [name for name, _, encoding in columns if encoding]
    key_list = ", ".join(f"{mark}{n}" for n in range(len(keys)))

    def key_of(first: str, second: str) -> str:
        return ", ".join(f"coalesce({typed(first, k)}, {typed(second, k)}) as {first}_{n}" for n, k in enumerate(keys))

    def typed(image: str, name: str) -> str:
        type_, encoding = next((type_, encoding) for n, type_, encoding in columns if n == name)
        return f"to_binary(cast({image}[{literal(name)}] as string), 'hex')" if encoding else f"cast({image}[{literal(name)}] as {type_})"

    def same_key(one: str, two: str) -> str:
        return "".join(f" and {one}.{mark}{n} = {two}.{mark}{n}" for n in range(len(keys)))

    of_table = f"concat(source_schema, '.', source_table) in ({', '.join(map(literal, table.names))})"
    tables = f"array({', '.join(map(literal, table.names))})"
    forgotten = f"(select count(*) from gold.applied where table_name = '{table.name}') = 0" if through_batch_id >= 0 else "false"
    return f"""with behind as (   -- is_moved: gold has gone on since, or is being made anew, and the view soon with it
  select b.source, b.batch_id, a.applied_seq, coalesce(a.is_moved, false) or {forgotten} as is_moved
  from silver.batches b left join (
    select source, max(case when through_batch_id <= {through_batch_id} then through_change_seq end) as applied_seq, min(through_batch_id) > {through_batch_id} as is_moved
    from gold.applied where table_name = '{table.name}' group by source) a on a.source = b.source
  where b.batch_id > {through_batch_id} and arrays_overlap(b.tables, {tables})
),
pending as (
  select c.source, c.change_seq, operation, {transaction.format(*TRANSACTION)} as transaction, applied_seq, is_moved, {_image(table, 'before')} as b, {_image(table, 'after')} as a
  from silver.changes c join behind on behind.source = c.source and behind.batch_id = c.batch_id
  where c.batch_id > {through_batch_id} and {of_table}
  union all
  select e.source, e.change_seq, upper(kind), {NO_TRANSACTION}, applied_seq, is_moved, {NO_IMAGE}, {NO_IMAGE}
  from silver.control_events e join behind on behind.source = e.source and behind.batch_id = e.batch_id
  where e.batch_id > {through_batch_id} and kind in ('empty_load', 'load_end') and e.change_seq is not null and {of_table}
),
entries as (   -- hold: gold alone can tell what comes of this change
  select *, {', '.join(f"if(operation = 'DELETE', b_{n}, a_{n}) as {mark}{n}" for n in range(len(keys)))},
         case when is_moved or change_seq <= applied_seq then '' when operation = 'LOAD_END' then change_seq
              when operation = 'UPDATE' and ({' or '.join(f'b_{n} <> a_{n}' for n in range(len(keys)))}) then change_seq end as hold
  from (select *, {key_of('b', 'a')}, {key_of('a', 'b')} from pending)
),
placed as (
  select *, max(case when operation in {WIPES} and change_seq < coalesce(hold_seq, '~') then change_seq end) over (partition by source) as wiped_seq
  from (select *, min(hold) over (partition by source) as hold_seq from entries)
),
sources as (
  select source, max(hold_seq) as hold_seq, max(wiped_seq) as wiped_seq from placed group by source
),
changed as (
  select source, {key_list}, max(hold_seq) as hold_seq, max(wiped_seq) as wiped_seq,
         array_sort(collect_list(struct(change_seq, operation, transaction, a as image)),
                    (one, two) -> case when one.change_seq < two.change_seq then -1 when one.change_seq > two.change_seq then 1 else 0 end) as changes
  from placed where operation not in {WIPES} and change_seq < coalesce(hold_seq, '~') and change_seq >= coalesce(wiped_seq, '')
  group by source, {key_list}
),
current as (
  select *, {', '.join(f'{quoted(k)} as {mark}{n}' for n, k in enumerate(keys))} from gold.{table.name}__current version as of {version}
),
based as (
  select f.source, f.changes, f.hold_seq, c.{our('source')} is not null and f.wiped_seq is null as is_there, c.{our('valid_from_seq')} as seq, c.{our('conflict')} as conflict,
         {transaction.format(*(f'c.{our(n)}' for n in TRANSACTION))} as transaction, c.{our('not_supplied')} as unknown, cast(to_variant_object(struct({as_sent})) as map<string,variant>) as whole
  from changed f left join (select k.* from current k left semi join changed g on g.source = k.{our('source')}{same_key('g', 'k')}) c on c.{our('source')} = f.source{same_key('c', 'f')}
),
folded as (   -- onto: the transaction that has just put a row onto the one that was there; its DELETE takes that one away
  select source, hold_seq, map_keys(whole) as names,
         aggregate(changes,
           named_struct('is_there', is_there, 'seq', seq, 'onto', if(is_there and conflict in {ONTO_ROW}, transaction, null),
                        'image', if(is_there, map_filter(whole, (name, value) -> not array_contains(unknown, name)), {NO_IMAGE})),
           (row, change) -> case
             when change.operation = 'DELETE' and {same_transaction('row.onto', 'change.transaction')} is true
               then named_struct('is_there', true, 'seq', row.seq, 'onto', {NO_TRANSACTION}, 'image', row.image)
             when change.operation = 'DELETE'
               then named_struct('is_there', false, 'seq', change.change_seq, 'onto', {NO_TRANSACTION}, 'image', {NO_IMAGE})
             when change.operation = 'UPDATE'
               then named_struct('is_there', true, 'seq', change.change_seq, 'onto', {NO_TRANSACTION},
                                 'image', map_zip_with(row.image, change.image, (name, was, is) -> coalesce(is, was)))
             else named_struct('is_there', true, 'seq', change.change_seq, 'onto', if(row.is_there and change.operation = 'INSERT', change.transaction, null),
                               'image', change.image) end) as row
  from based
),
unpacked as (
  select source, hold_seq, row.seq, array_except(names, map_keys(row.image)) as not_supplied, {unpacked} as is
  from folded where row.is_there
)
select c.* except ({our('conflict')}, {', '.join(our(n) for n, _, _ in LINEAGE)}, {key_list}), false as {our('is_pending')}, s.hold_seq is not null as {our('is_held')}
from current c left anti join changed f on f.source = c.{our('source')}{same_key('f', 'c')} left join sources s on s.source = c.{our('source')}
where s.wiped_seq is null
union all
select source, {'is.*' if not hexed else ', '.join(f"to_binary(is.{quoted(n)}, 'hex')" if n in hexed else f'is.{quoted(n)}' for n, _, _ in columns)}, seq, size(not_supplied) = 0, not_supplied, true, hold_seq is not null
from unpacked"""


def _image(table: Table, image: str) -> str:
    """An image as a map from gold's names to VARIANT: what was supplied, and null for what the change's version did not have."""
    found = [(version.version, _image_of(table, version, image)) for version in table.versions]
    return found[0][1] if len(found) == 1 else "case table_version " + " ".join(f"when {number} then {sql}" for number, sql in found) + " else raise_error('a change of another version than the contract has: run `inlet run`') end"


def _image_of(table: Table, version: Table, image: str) -> str:
    then = {c.gold_name: table.column_in(version, c) for c in table.columns}
    renamed = {column.name: name for name, column in then.items() if column and (column.gold_name != name or not column.name.isascii())}
    name = f"coalesce(map({', '.join(f'{literal(a)}, {literal(b)}' for a, b in renamed.items())})[name], lower(name))" if renamed else "lower(name)"
    absent = ", ".join(f"{literal(n)}, parse_json('null')" for n, column in then.items() if column is None)
    sent = (f"transform_keys(map_filter(coalesce(cast({image} as map<string,variant>), {NO_IMAGE}), (name, value) -> (column_states[name] = 'missing') is not true), "
            f"(name, value) -> {name})")
    return f"if({image} is null, {NO_IMAGE}, map_concat({sent}, map({absent})))" if absent else sent
