"""`python -m inlet.lake.archive`: what a start of Spark needs, done ahead: Delta's jars resolved, and the archive of
classes written (jars.py).
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from inlet.lake import engine, jars
from inlet.lake.spark import session, small_query_settings

WORK = """
create table gold.rows (k string, v variant, n decimal(7,2), at timestamp, names array<string>)
  using delta tblproperties (delta.enableDeletionVectors = true);
insert into gold.rows select id, parse_json('{"a":1}'), 1, now(), array('a') from range(10);
merge into gold.rows r using (select k, n from gold.rows where k > 5 union all select 'x', 2) s
  on r.k = s.k when matched then update set n = s.n when not matched then insert (k, n) values (s.k, s.n);
delete from gold.rows where n = 2;
update gold.rows set n = 3 where k = '1';
insert overwrite table gold.rows select * except (last)
  from (select *, lead(k) over (partition by n order by k) as last from gold.rows)
  where last is null or size(names) > 0;
create or replace table gold.kept using delta as
  select k, variant_get(v, '$.a', 'int') as a, count(*) as num from gold.rows group by all;
create or replace view gold.shown as select r.*, p.a from gold.rows r left join gold.kept p on p.k = r.k;
select k from gold.shown union all select 'x' order by k limit 5;
alter table gold.kept set tblproperties (delta.columnMapping.mode = 'name');
show tables in gold like 'k*';
drop table gold.kept
"""


def write_archive() -> None:
    """Start Spark, let it do what a run does, and keep its classes. Takes half a minute. A JVM that cannot write one
    goes without.
    """
    jars.archive().unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.archive().parent) as folder:
        made = Path(folder) / "classes.jsa"
        spark = session(
            f"{folder}/lakehouse",
            java_options=f' "-XX:ArchiveClassesAtExit={made}" -Xlog:cds*=off -XX:TieredStopAtLevel=1',
        )
        with small_query_settings(spark, is_small=True):
            for statement in WORK.split(";"):
                spark.sql(statement).collect()
        jvm = spark.sparkContext._gateway
        spark.stop()
        jvm.shutdown()
        jvm.proc.stdin.close()
        jvm.proc.wait(timeout=300)
        if made.exists():
            made.rename(jars.archive())
        else:
            print("This JVM wrote no archive of classes: starts of Spark take some seconds longer.")


if __name__ == "__main__":  # `make` does this once, before anything is measured or tested
    if not jars.are_resolved():  # by a JVM of its own: Spark's does not end with its session
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "import sys; from inlet.lake.spark import session; session(sys.argv[1]).stop()",
                    folder,
                ],
                check=True,
            )
    if not engine.is_apart():
        write_archive()
