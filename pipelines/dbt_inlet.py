"""What dbt loads by itself, because of this module's name: a plain `dbt build` of an Inlet project holds the lakehouse
as a run does.

dbt imports every installed module that is called dbt_*, and makes an object of each of its `plugins` before a command
begins. A command that writes takes the lock of `inlet.lake.writing` until its process ends, or is refused; so is
every one of a lakehouse that was copied or moved (`inlet.lake.place`). Macros see
that by INLET_WRITES; where Inlet is not installed beside dbt nobody sets it, and refuse_without_lock.sql refuses
instead.

The session is made here, by `inlet.lake.spark`: dbt has read its profile by now, and uses a session that exists. So a
plain dbt starts Spark as a run does: from jars that are resolved, with the JVM's messages in a file, with the catalog
that a server shares (`inlet serve`). Settings that the profile changes or adds are kept.

Source: dbt-core 1.11, dbt/plugins/manager.py. ASSUMED: later versions keep it; a test fails where one does not.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from dbt.config.runtime import load_profile
from dbt.flags import get_flags
from dbt.plugins import dbtPlugin
from dbt_common.context import get_invocation_context
from dbt_common.exceptions import DbtRuntimeError

WRITING = {"build", "clone", "retry", "run", "run-operation", "seed", "snapshot"}
READING = {"compile", "freshness", "generate", "show", "test"}  # by a session
SESSION = "session"  # the method of a target that starts Spark in dbt's own process
held, holding = ExitStack(), set()  # until the process ends, which may run several commands


class Lock(dbtPlugin):
    """Takes the lock, and starts Spark. Raises: DbtRuntimeError where it cannot."""

    def initialize(self) -> None:
        flags = get_flags()
        folder = Path(flags.PROJECT_DIR).resolve()
        if (
            flags.WHICH not in WRITING | READING
            or flags.TARGET == "inlet"
            or not (folder.parent / "pipelines" / "inlet.yml").exists()
        ):
            return  # it asks no lakehouse, Inlet itself called it and holds the lock, or it is another project
        if of_profile().type == "databricks":  # a SQL warehouse, which builds marts alone: refuse_without_lock.sql
            return
        from inlet import config, lake, publish, storage, store_errors
        from inlet.errors import InletError
        from inlet.lake import place

        lakehouse = os.environ.get("INLET_LAKEHOUSE", "../lakehouse")
        is_local = storage.is_local(lakehouse)
        path = str((folder / lakehouse).resolve()) if is_local else lakehouse
        try:
            project = config.load(folder.parent)  # it says how its store is reached, and what its schemas are called
            place.check(path)
            if flags.WHICH in WRITING and path not in holding:
                held.enter_context(lake.writing(path))
                holding.add(path)
            spark = start_spark(path, lakehouse)
            if spark:
                publish.show(project, spark)
        except Exception as error:
            worded = error if isinstance(error, InletError) else store_errors.worded(error)
            if worded is None:
                raise
            raise DbtRuntimeError(str(worded)) from error
        if flags.WHICH in WRITING:
            get_invocation_context().env["INLET_WRITES"] = "1"


def of_profile():
    """The credentials that dbt's command uses."""
    flags = get_flags()
    return load_profile(flags.PROJECT_DIR, flags.VARS, flags.PROFILE, flags.TARGET).credentials


def start_spark(path: str, lakehouse: str):
    """The session that dbt then uses; None where it uses none of Spark in this process. In: the lakehouse's absolute
    path or address, and as the profile names it."""
    from inlet import storage
    from inlet.lake import jars, spark

    if getattr(credentials := of_profile(), "method", None) != SESSION:  # adapters of others need not have it
        return None
    own = spark.settings(lakehouse) | {"spark.jars.packages": jars.DELTA}
    given = {name: str(value) for name, value in credentials.server_side_parameters.items()}
    is_local = storage.is_local(path)  # else the profile cannot say where the catalog is
    further = {n: value for n, value in given.items() if own.get(n) != value and (is_local or n not in own)}
    return spark.session(path, further=further)


plugins = [Lock]
