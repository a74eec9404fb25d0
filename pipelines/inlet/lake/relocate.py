"""A lakehouse folder that was copied or moved becomes a lakehouse of its own: its catalog names its own tables.

The paths in the catalog are written again in one transaction of Derby's, not made again from the tables: the published
point, views and pins are in the catalog alone, and stay as they are.

ASSUMED: Hive's schema holds paths in the three columns of COLUMNS, and Spark writes them as they are, blanks and
letters beyond ASCII included; a test looks for the old path in every column.
"""

import fcntl
from contextlib import contextmanager
from pathlib import Path

from inlet import layout
from inlet.errors import InletError
from inlet.lake import catalog, place
from inlet.lake.java import check_java
from inlet.lake.spark import jvm_messages_to_file
from inlet.lake.tables import DATABASES

SCHEME = "file:"
# locations of databases and of tables, and where Spark reads a table
COLUMNS = (("DBS", "DB_LOCATION_URI"), ("SDS", "LOCATION"), ("SERDE_PARAMS", "PARAM_VALUE"))


def relocate(lakehouse: str) -> list[str]:
    """Make the catalog name the tables of the folder that it lies in. Doing it again changes nothing. In: the absolute
    path of a folder with a catalog, to which no one else writes. Out: the places that it named; none where it named
    this one.

    Raises: TryAgain where another process has the catalog open, EnvironmentLacks where Java is missing, InletError
    where the catalog cannot be written; then it is as it was.
    """
    check_java()
    with catalog.guarded(lakehouse):
        _drop_server(lakehouse)
        catalog.check_embedded(lakehouse)
        with _opened(lakehouse) as connection:
            old = sorted(_named(connection) - {lakehouse})
            for one in old:
                for table, column in COLUMNS:
                    _replace(connection, table, column, SCHEME + one, SCHEME + lakehouse)
        place.write(lakehouse)
    return old


def _drop_server(lakehouse: str) -> None:
    """Remove the address of a shared server, which a copy has from its original. Raises: TryAgain where it is used."""
    path = Path(lakehouse) / catalog.FILE
    if not path.exists():
        return
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise catalog.taken(lakehouse) from error
        path.unlink()


@contextmanager
def _opened(lakehouse: str):
    """A JDBC connection to the catalog in the folder, in a JVM of its own; one transaction."""
    from py4j.protocol import Py4JJavaError
    from pyspark.java_gateway import launch_gateway

    with jvm_messages_to_file():
        gateway = launch_gateway()
    try:
        gateway.jvm.java.lang.System.setProperty("derby.system.home", lakehouse)  # where its log goes
        drivers = gateway.jvm.java.sql.DriverManager
        connection = drivers.getConnection(f"jdbc:derby:;databaseName={lakehouse}/{place.CATALOG}")
        connection.setAutoCommit(False)
        yield connection
        connection.commit()
        connection.close()
    except Py4JJavaError as error:
        words = str(error.java_exception.getMessage())
        if "XSDB6" in words or "Another instance of Derby" in words:
            raise catalog.taken(lakehouse) from error
        raise InletError(f"The catalog of {lakehouse} cannot be written: {words}", "Nothing was changed") from error
    finally:
        gateway.shutdown()
        gateway.proc.kill()
        gateway.proc.wait()


def _named(connection) -> set[str]:
    """The folders of the lakehouses whose databases the catalog names."""
    found = set()
    rows = connection.createStatement().executeQuery('select "NAME", "DB_LOCATION_URI" from "DBS"')
    while rows.next():
        name, location = rows.getString(1), rows.getString(2).removeprefix(SCHEME)
        found |= {location.removesuffix(f"/{one}") for one in DATABASES if name == layout.of(one)}
    return found


def _replace(connection, table: str, column: str, before: str, after: str) -> None:
    """Replace a path at the beginning of a column's values."""
    size = len(before)
    statement = connection.prepareStatement(
        f'update "{table}" set "{column}" = ? || substr("{column}", {size + 1}) '
        f'where "{column}" = ? or substr("{column}", 1, {size + 1}) = ?'
    )
    for n, text in enumerate((after, before, f"{before}/"), 1):
        statement.setString(n, text)
    statement.executeUpdate()
    statement.close()
