"""OpenLineage events of each run: what it read, what it wrote, how it ended. Off unless `metrics:` in inlet.yml says
`openlineage: true`, which leaves the rest to that library's own settings (OPENLINEAGE_URL, OPENLINEAGE_CONFIG, ...), or
names a file, to which each event is added as a line of JSON.

A run does not wait for who listens: an event is sent once, within seconds, unless those settings say otherwise, and
after a failure nothing is sent for some minutes.
"""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from inlet import storage, store_errors
from inlet.config import Project
from inlet.log import Log
from inlet.table import Table

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.transport.transport import Transport

NAMESPACE = "inlet"
PRODUCER = "https://pypi.org/project/inlet"
SECONDS = 5.0  # for an event that the library sends in the background
PAUSE_SECONDS = 300.0  # after a failure

_paused_until: dict[Path, float] = {}  # by project's folder


def begin(project: Project, log: Log, command: str, began: datetime) -> "Run | None":
    """Send START. Out: the run that `end` is to name; None where no events are asked for."""
    if not project.metrics.openlineage:
        return None
    from openlineage.client.event_v2 import Run, RunState

    run = Run(runId=str(uuid4()))
    _send(project, log, run, command, RunState.START, began)
    return run


def end(project: Project, log: Log, run: "Run | None", record: dict) -> None:
    """Send COMPLETE or FAIL. In: what `begin` gave; the run, as it is noted."""
    if run is None:
        return
    from openlineage.client.event_v2 import RunState
    from openlineage.client.generated.error_message_run import ErrorMessageRunFacet

    if record["error"]:
        run.facets = {
            "errorMessage": ErrorMessageRunFacet(
                store_errors.without_user(record["error"]), programmingLanguage="Python"
            )
        }
    state = RunState.FAIL if record["exit_code"] else RunState.COMPLETE
    ended = datetime.fromisoformat(record["began"]) + timedelta(seconds=record["seconds"])
    _send(project, log, run, record["command"], state, ended)


def _send(project: Project, log: Log, run: "Run", command: str, state: "RunState", at: datetime) -> None:
    if time.monotonic() < _paused_until.get(project.root, 0):
        return
    try:
        _emit(project, _event(project, run, command, state, at))
    except Exception as error:  # who listens is no reason to fail a run
        _paused_until[project.root] = time.monotonic() + PAUSE_SECONDS
        why = f"{type(error).__name__}: {store_errors.without_user(str(error))}"
        pause = f"nothing is sent for {PAUSE_SECONDS / 60:.0f} minutes"
        log.say({"step": "warning", "openlineage": f"{state.name} could not be sent: {why}; {pause}"})


def _event(project: Project, run: "Run", command: str, state: "RunState", at: datetime) -> "RunEvent":
    from openlineage.client.event_v2 import Job, RunEvent

    return RunEvent(
        eventTime=at.astimezone(UTC).isoformat(),
        producer=PRODUCER,
        run=run,
        job=Job(namespace=NAMESPACE, name=f"{project.root.name}.{command}"),
        eventType=state,
        inputs=_inputs(project),
        outputs=[_output(project, table) for table in project.tables.values()],
    )


def _emit(project: Project, event: "RunEvent") -> None:
    """Raises: whatever the library does; TimeoutError for what it has not sent in time."""
    client = _client(project)
    try:
        client.emit(event)
    finally:
        is_sent = client.close(SECONDS)
    if not is_sent:
        raise TimeoutError(f"not sent within {SECONDS:.0f} seconds")


def _client(project: Project) -> "OpenLineageClient":
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.file import FileConfig, FileTransport

    if project.metrics.openlineage is True:
        client = OpenLineageClient()
        for transport in (client.transport, *getattr(client.transport, "transports", ())):
            _try_once(transport)
        return client
    path = Path(project.root, str(project.metrics.openlineage))
    path.parent.mkdir(parents=True, exist_ok=True)
    return OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=str(path), append=True)))


def _try_once(transport: "Transport") -> None:
    """By itself the library tries a server six times, for 5 seconds each. Retries that its settings ask for stay."""
    from openlineage.client.transport.http_common import DEFAULT_RETRY_CONFIG

    config = getattr(transport, "config", None)
    if getattr(config, "retry", None) is DEFAULT_RETRY_CONFIG:
        config.retry = DEFAULT_RETRY_CONFIG | dict.fromkeys(("total", "read", "connect"), 0)


def place(url: str) -> tuple[str, str]:
    """OpenLineage's namespace and name of a folder, pattern or address.

    >>> place("/data/landing/*.lxg"), place("s3://bucket/shop/*.parquet"), place("sftp://me:secret@host/in/*.lxg")
    (('file', '/data/landing/*.lxg'), ('s3://bucket', 'shop/*.parquet'), ('sftp://host', 'in/*.lxg'))
    """
    if storage.is_local(url):
        return "file", url
    scheme, _, rest = store_errors.without_user(url).partition("://")
    authority, _, name = rest.partition("/")
    return f"{scheme}://{authority}", name


def _inputs(project: Project) -> "list[InputDataset]":
    """What the sources read: each folder or pattern, each topic."""
    from openlineage.client.event_v2 import InputDataset

    return [
        InputDataset(namespace=namespace, name=name)
        for source in project.sources.values()
        for namespace, name in (
            [(f"kafka://{source.broker.servers}", topic) for topic in source.broker.topics]
            if source.broker
            else [place(project.resolve(source.path))]
        )
    ]


def _output(project: Project, table: Table) -> "OutputDataset":
    """The public view of a table, with the columns that it shows."""
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields

    namespace, name = place(
        project.lakehouse_path("public", table.name if table.key else f"{table.name}__before_after")
    )
    fields = [
        SchemaDatasetFacetFields(name=table.our("source"), type="string", description="the ordered feed"),
        *(SchemaDatasetFacetFields(name=c.gold_name, type=c.type, description=c.description) for c in table.columns),
    ]
    return OutputDataset(namespace=namespace, name=name, facets={"schema": SchemaDatasetFacet(fields=fields)})
