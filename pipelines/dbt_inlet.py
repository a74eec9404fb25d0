"""What dbt loads by itself, because of this module's name: a plain `dbt build` of an Inlet project holds the lakehouse
as a run does.

dbt imports every installed module that is called dbt_*, and makes an object of each of its `plugins` before a command
begins. A command that writes takes the lock of `inlet.lake.writing` until its process ends, or is refused; so is
every one of a lakehouse that was copied or moved (`inlet.lake.place`). Macros see
that by INLET_WRITES; where Inlet is not installed beside dbt nobody sets it, and refuse_without_lock.sql refuses
instead.

Where a server shares the catalog (`inlet serve`), the session is made here: dbt has read its profile by now, and uses a
session that is there.

Source: dbt-core 1.11, dbt/plugins/manager.py. ASSUMED: later versions keep it; a test fails where one does not.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from dbt.flags import get_flags
from dbt.plugins import dbtPlugin
from dbt_common.context import get_invocation_context
from dbt_common.exceptions import DbtRuntimeError

WRITING = {"build", "clone", "retry", "run", "run-operation", "seed", "snapshot"}
READING = {"compile", "freshness", "generate", "show", "test"}  # by a session
held, holding = ExitStack(), set()  # until the process ends, which may run several commands


class Lock(dbtPlugin):
    """Takes the lock, and uses the catalog that is shared. Raises: DbtRuntimeError where it cannot."""

    def initialize(self) -> None:
        flags = get_flags()
        folder = Path(flags.PROJECT_DIR).resolve()
        if (
            flags.WHICH not in WRITING | READING
            or flags.TARGET == "inlet"
            or not (folder.parent / "pipelines" / "inlet.yml").exists()
        ):
            return  # it asks no lakehouse, Inlet itself called it and holds the lock, or it is another project
        from inlet import lake
        from inlet.errors import InletError
        from inlet.lake import catalog, place, spark

        lakehouse = os.environ.get("INLET_LAKEHOUSE", "../lakehouse")
        path = lakehouse if "://" in lakehouse else str((folder / lakehouse).resolve())
        try:
            place.check(path)
            if flags.WHICH in WRITING and path not in holding:
                held.enter_context(lake.writing(path))
                holding.add(path)
            if catalog.is_shared(path):
                spark.session(path)
        except InletError as error:
            raise DbtRuntimeError(str(error)) from error
        if flags.WHICH in WRITING:
            get_invocation_context().env["INLET_WRITES"] = "1"


plugins = [Lock]
