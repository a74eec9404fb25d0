"""What the names of a source's files say before one is read: options that they need, and folders that are none of a
change table or a load. For `inlet doctor`.
"""

from inlet.codecs.qlik import dfm
from inlet.codecs.qlik.change_table import file_name
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Preview
from inlet.source import Source
from inlet.table import Table

BEFORE_IMAGES = (
    "the option before_images, or updates are rejected: stored, where Qlik stores before-images (Store Changes "
    "Settings); none, where it does not"
)
LOAD_TIME = "the option load_time, when the full load began (UTC)"
LOAD_TIME_OF_SIDECAR = ", or the option sidecar, where the .dfm of LOAD00000001 lies, which tells it"


def preview(paths: list[str], source: Source, tables: dict[str, Table]) -> Preview:
    """What is missing, and the first file of each kind, of a table with a contract where there is one. In: paths of
    files that are read, and of sidecars."""
    options = source.options_as(Options)
    paths = [path for path in paths if not path.lower().endswith(dfm.SUFFIX)]
    refused: list[tuple[Refused, str]] = []
    first, known = dict[str, str](), dict[str, str]()  # kind -> path
    has_segments = False
    for path in paths:
        context = file_name.by_name(path, options)
        if isinstance(context, Refused):
            refused.append((context, path))
            continue
        table = source.table_of(context["word"]) or context["word"]
        if source.wants(table):
            first.setdefault(context["kind"], path)
            if table in tables:
                known.setdefault(context["kind"], path)
            has_segments |= context.get("number", 0) >= file_name.FIRST_OF_SEGMENTS
    lacking = [f"{no.expected} (found {path})" for no, path in refused[:1] if len(refused) == len(paths)]
    if "changes" in first and options.before_images == "auto":
        lacking.append(BEFORE_IMAGES)
    if "load" in first and options.load_time is None and (has_segments or options.sidecar == "none"):
        lacking.append(LOAD_TIME + ("" if has_segments else LOAD_TIME_OF_SIDECAR))
    return Preview(lacking, [(first | known)[kind] for kind in ("load", "changes") if kind in first])
