"""The hand-written pipeline: what one good PySpark script does with the same Qlik messages, statement by statement.

It appends the messages to bronze and the parsed changes to silver. Of each table that changed it merges the newest
change of each key into current (`row_number`), closes the versions that end by a MERGE into history, inserts the new
ones, and asks whether a key is null or there twice. It trusts its input: no reject, no repeat, no late change, no
partial image, no restart, no published point.
"""

from pathlib import Path

from inlet.sql import literal

PARSED = """
    select topic, upper(split_part(topic, '.', 2)) as source_table,
           m:message.headers.changeSequence::string as change_seq, m:message.headers.operation::string as operation,
           m:message.headers.transactionId::string as transaction_id,
           m:message.headers.timestamp::timestamp as change_timestamp, m:message.data as after,
           m:message.beforeData as before, batch_id
    from (select topic, batch_id, parse_json(cast(value as string)) as m from hand.bronze where batch_id = {})"""
SILVER = "topic string, source_table string, change_seq string, operation string, transaction_id string, \
change_timestamp timestamp, after variant, before variant, batch_id bigint"
BRONZE = "topic string, `partition` int, `offset` bigint, timestamp timestamp, value binary, batch_id bigint"


class HandWritten:
    """In: columns and types of its tables, all alike; the first is the key."""

    def __init__(self, spark, lakehouse: str, columns: list[tuple[str, str]]):
        self.spark, self.columns = spark, columns
        self.names = [name for name, _ in columns]
        self.ddl = ", ".join(f"{name} {type_}" for name, type_ in columns)
        self.num_batches = 0
        spark.sql(f"create database if not exists hand location {literal(f'{lakehouse}/hand')}")
        spark.sql(f"create table if not exists hand.bronze ({BRONZE}) using delta")
        spark.sql(f"create table if not exists hand.silver ({SILVER}) using delta")
        self.existing = {row.tableName for row in spark.sql("show tables in hand").collect()}

    def run(self, path: Path) -> None:
        """Bring the messages of a file into the tables, and check these."""
        self.num_batches += 1
        self.spark.sql(
            "insert into hand.bronze select topic, `partition`, `offset`, timestamp, value, "
            f"{self.num_batches} from parquet.`{path}`"
        )
        self.spark.sql("insert into hand.silver" + PARSED.format(self.num_batches))
        changed = self.spark.sql(
            f"select distinct lower(source_table) as name from hand.silver where batch_id = {self.num_batches}"
        ).collect()
        for name in sorted(row.name for row in changed):
            self._create(name)
            self._merge_current(name)
            self._merge_history(name)
            self._check(name)

    def _create(self, name: str) -> None:
        for kind, more in (
            ("current", "valid_from_seq string"),
            ("history", "valid_from_seq string, valid_to_seq string"),
        ):
            if f"{name}_{kind}" not in self.existing:
                self.spark.sql(f"create table hand.{name}_{kind} ({self.ddl}, {more}) using delta")
                self.existing.add(f"{name}_{kind}")

    def _changes(self, name: str) -> str:
        return (
            "select change_seq, operation, a.* from (select change_seq, operation, "
            f"cast(after as struct<{', '.join(f'{n}: {t}' for n, t in self.columns)}>) as a from hand.silver "
            f"where batch_id = {self.num_batches} and source_table = '{name.upper()}')"
        )

    def _merge_current(self, name: str) -> None:
        key, names = self.names[0], self.names
        self.spark.sql(f"""
            merge into hand.{name}_current t using (
                select * from (select *, row_number() over (partition by {key} order by change_seq desc) as nth
                  from ({self._changes(name)})) where nth = 1) s
            on t.{key} = s.{key}
            when matched and s.operation = 'DELETE' then delete
            when matched then update set {", ".join(f"t.{n} = s.{n}" for n in names)}, t.valid_from_seq = s.change_seq
            when not matched and s.operation <> 'DELETE' then insert ({", ".join(names)}, valid_from_seq)
                values ({", ".join(f"s.{n}" for n in names)}, s.change_seq)""")

    def _merge_history(self, name: str) -> None:
        key, names = self.names[0], self.names
        self.spark.sql(f"""
            merge into hand.{name}_history t using (
                select {key}, min(change_seq) as change_seq from ({self._changes(name)}) group by {key}) s
            on t.{key} = s.{key} and t.valid_to_seq is null
            when matched then update set t.valid_to_seq = s.change_seq""")
        self.spark.sql(f"""
            insert into hand.{name}_history
            select {", ".join(names)}, change_seq, next_seq from (
                select *, lead(change_seq) over (partition by {key} order by change_seq) as next_seq
                from ({self._changes(name)})) where operation <> 'DELETE'""")

    def _check(self, name: str) -> None:
        key = self.names[0]
        num_null, num_twice = self.spark.sql(
            f"select count_if({key} is null), count({key}) - count(distinct {key}) from hand.{name}_current"
        ).first()
        if num_null or num_twice:
            raise ValueError(f"{name}: {num_null} rows without a key, {num_twice} with one that is there")
