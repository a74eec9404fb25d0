"""Delta's jars, and an archive of the classes that a session loads from them and from Spark's: what a start of Spark costs beyond Spark.

Ivy resolves the jars by coordinates once; their local paths are remembered beside the virtual environment, because a resolve at every start
costs seconds. `python -m inlet.jars` does both ahead: it also starts Spark, lets it do what a run does, and has the JVM write the 25,000
classes down as it has them by then (class-data sharing), so that later ones take them from there: 15 of 65 CPU seconds of a short
session. A JVM that does not fit the archive, another version or another class path, goes on without it.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"      # the wheel's jar; its version is not the wheel's everywhere
WORK = """
create table gold.rows (k string, v variant, n decimal(7,2), at timestamp, names array<string>) using delta tblproperties (delta.enableDeletionVectors = true)
insert into gold.rows select id, parse_json('{"a":1}'), 1, now(), array('a') from range(10)
merge into gold.rows r using (select k, n from gold.rows where k > 5 union all select 'x', 2) s on r.k = s.k when matched then update set n = s.n when not matched then insert (k, n) values (s.k, s.n)
delete from gold.rows where n = 2
update gold.rows set n = 3 where k = '1'
insert overwrite table gold.rows select * except (last) from (select *, lead(k) over (partition by n order by k) as last from gold.rows) where last is null or size(names) > 0
create or replace table gold.kept using delta as select k, variant_get(v, '$.a', 'int') as a, count(*) as num from gold.rows group by all
create or replace view gold.shown as select r.*, p.a from gold.rows r left join gold.kept p on p.k = r.k
select k from gold.shown union all select 'x' order by k limit 5
alter table gold.kept set tblproperties (delta.columnMapping.mode = 'name')
show tables in gold like 'k*'
drop table gold.kept
"""


def paths() -> Path:
    """Where the paths of the jars are remembered."""
    return Path(sys.prefix) / "share" / "inlet" / f"{DELTA.replace(':', '-')}.jars"


def archive() -> Path:
    return paths().with_suffix(".jsa")


def are_resolved() -> bool:
    return _known() != []


def settings(packages: tuple[str, ...] = ()) -> dict[str, str]:
    """Spark settings that bring Delta's jars and the archive, where they are there. In: coordinates of further jars."""
    if not _known():
        return {"spark.jars.packages": ",".join([DELTA, *packages])}
    further = {"spark.jars.packages": ",".join(packages)} if packages else {}
    if _is_apart():                                # other machines are sent what is in spark.jars
        return {"spark.jars": ",".join(_known())} | further
    return {"spark.driver.extraClassPath": os.pathsep.join(_known())} | further      # only what is on the class path comes from an archive


def java_options() -> str:
    """Options of the JVM that take classes from the archive, where it is there."""
    return f' "-XX:SharedArchiveFile={archive()}" -Xlog:cds*=off' if archive().exists() and _known() and not _is_apart() else ""


def remember(spark) -> None:
    """Keep the paths of the jars that a session has resolved."""
    if spark.conf.get("spark.jars.packages", "") == DELTA:
        jars = [Path(jar.removeprefix("file:")) for jar in spark.conf.get("spark.jars", "").split(",") if jar]
        shipped = " ".join(p.name for p in (Path(__import__("pyspark").__file__).parent / "jars").iterdir())
        wanted = [str(j) for j in jars if re.sub(r"-[\d.]+\.jar$", "", j.name.split("_", 1)[-1]) + "-" not in shipped]
        if wanted:
            paths().parent.mkdir(parents=True, exist_ok=True)
            paths().write_text("\n".join(wanted))


def _known() -> list[str]:
    listed = paths().read_text().splitlines() if paths().exists() else []
    return listed if all(Path(jar).exists() for jar in listed) else []


def _is_apart() -> bool:
    """Do Spark's workers run elsewhere?"""
    return not re.match(r"local(\[|$)", os.environ.get("INLET_MASTER", "local"))


def write_archive() -> None:
    """Start Spark, let it do what a run does, and keep its classes. Takes half a minute. A JVM that cannot write one goes without."""
    from inlet.spark import pace, session

    archive().unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=archive().parent) as folder:
        made = Path(folder) / "classes.jsa"
        spark = session(f"{folder}/lakehouse", java_options=f' "-XX:ArchiveClassesAtExit={made}" -Xlog:cds*=off -XX:TieredStopAtLevel=1')
        with pace(spark, is_small=True):
            for statement in WORK.strip().splitlines():
                spark.sql(statement).collect()
        jvm = spark.sparkContext._gateway
        spark.stop()
        jvm.shutdown()
        jvm.proc.stdin.close()
        jvm.proc.wait(timeout=300)
        if made.exists():
            made.rename(archive())
        else:
            print("This JVM wrote no archive of classes: starts of Spark take some seconds longer.")


if __name__ == "__main__":                        # `make` does this once, before anything is measured or tested
    if not are_resolved():                         # by a JVM of its own: Spark's does not end with its session
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            subprocess.run([sys.executable, "-c", "import sys; from inlet.spark import session; session(sys.argv[1]).stop()", folder], check=True)
    if not _is_apart():
        write_archive()
