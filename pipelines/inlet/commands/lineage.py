"""OpenLineage events of each run: what it read, what it wrote, how it ended. Off unless `metrics:` in inlet.yml says
`openlineage: true`, which leaves the rest to that library's own settings (OPENLINEAGE_URL, OPENLINEAGE_CONFIG, ...), or
names a file, to which each event is added as a line of JSON.
"""

import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from inlet.config import Project
from inlet.log import Log
from inlet.table import Table

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset, Run

NAMESPACE = "inlet"
PRODUCER = "https://pypi.org/project/inlet"


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
        run.facets = {"errorMessage": ErrorMessageRunFacet(message=record["error"], programmingLanguage="Python")}
    state = RunState.FAIL if record["exit_code"] else RunState.COMPLETE
    ended = datetime.fromisoformat(record["began"]) + timedelta(seconds=record["seconds"])
    _send(project, log, run, record["command"], state, ended)


def _send(project: Project, log: Log, run: "Run", command: str, state, at: datetime) -> None:
    from openlineage.client.event_v2 import Job, RunEvent

    event = RunEvent(
        eventTime=at.astimezone(UTC).isoformat(),
        producer=PRODUCER,
        run=run,
        job=Job(namespace=NAMESPACE, name=f"{project.root.name}.{command}"),
        eventType=state,
        inputs=_inputs(project),
        outputs=[_output(project, table) for table in project.tables.values()],
    )
    try:
        with contextlib.closing(_client(project)) as client:
            client.emit(event)
    except Exception as error:  # who listens is no reason to fail a run
        log.say({"step": "warning", "openlineage": f"{state.name} could not be sent: {type(error).__name__}: {error}"})


def _client(project: Project) -> Any:
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.file import FileConfig, FileTransport

    if project.metrics.openlineage is True:
        return OpenLineageClient()
    path = Path(project.root, str(project.metrics.openlineage))
    path.parent.mkdir(parents=True, exist_ok=True)
    return OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=str(path), append=True)))


def place(url: str) -> tuple[str, str]:
    """OpenLineage's namespace and name of a folder, pattern or address.

    >>> place("/data/landing/*.lxg"), place("s3://bucket/shop/*.parquet")
    (('file', '/data/landing/*.lxg'), ('s3://bucket', 'shop/*.parquet'))
    """
    if "://" not in url:
        return "file", url
    scheme, _, rest = url.partition("://")
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
