"""`inlet init DIR`: a new project folder that runs as it is, with a source where one is named. It copies the dbt macros
and the suites this package came with.
"""

import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import ValidationError

from inlet import config, storage
from inlet.bronze.files import listing
from inlet.bronze.foreign import foreign_files
from inlet.codecs import CODECS
from inlet.commands.import_definitions import EXAMPLE as EXAMPLE_FILE
from inlet.commands.import_definitions import ways_to_contracts
from inlet.errors import ConfigError
from inlet.gold import generate

INLET_YML = """\
# Where changes come from, and where the lakehouse is. `inlet doctor` checks this file.
lakehouse: lakehouse

"""
NO_SOURCES = """\
sources: {}
#  shop:                                # one ordered feed: one Qlik task, one extract definition
#    codec: qlik_json                   # or linkexpress_group, linkexpress_table, goldengate_trail, ...
#    from: landing/shop/*.parquet       # a folder or pattern, or an address as s3://bucket/shop/*.parquet
#                                       # (`storage` names its endpoint: docs/a_source_from_zero.md);
#                                       # or {transport: lines, path: landing/shop/*.jsonl}
#                                       # or {transport: kafka, servers: "host:9092", topics: [shop.orders]}
#    tables: {shop.orders: SHOP.ORDERS} # topic (or extraction id) -> SCHEMA.TABLE
"""
EXAMPLE = """\
# One captured table. Copy to <table>.yml, fill in, run `inlet generate`.
table: SHOP.ORDERS
name: orders
key: [ORDER_ID]
columns:
  - {name: ORDER_ID, type: bigint, nullable: false}
  - {name: ORDERED_ON, type: date}
  - {name: AMOUNT, type: "decimal(9,2)"}
"""
LEFT_OUT = ("target", "logs", "gold", "shop", ".user.yml")  # made by dbt, and the demo's own models and marts
AIRFLOW = "infra/airflow"  # a folder of this repository, and of a project that is scheduled by it
IGNORE = "/lakehouse/\n/landing/\ndbt/target/\ndbt/logs/\n"


class FirstSource(NamedTuple):
    """The source that a project begins with."""

    name: str
    codec: str
    place: str  # `from`: a file, a folder, a pattern, a URL
    transport: str | None = None  # what a file holds, where it is not what the codec reads first
    options: dict[str, str] = {}  # of the codec

    @property
    def text(self) -> str:
        place = {"transport": self.transport, "path": self.place} if self.transport else self.place
        codec = CODECS.get(self.codec)
        options = {name: _option(codec, name, value) if codec else value for name, value in self.options.items()}
        source = {"codec": self.codec, "from": place} | ({"options": options} if options else {})
        return yaml.safe_dump({"sources": {self.name: source}}, sort_keys=False)


def _option(codec, name: str, text: str):
    """The value of an option: the text itself where the codec takes it, else what YAML reads."""
    try:
        codec.OPTIONS(**{name: text})
    except ValidationError as error:
        if any(problem["loc"][:1] == (name,) for problem in error.errors()):
            try:
                return yaml.safe_load(text)
            except (yaml.YAMLError, ValueError):  # of a date that is none
                return text
    return text


def init(folder: Path, source: FirstSource | None = None, has_airflow: bool = False) -> list[str]:
    """Make the folder. In: whether it has the Airflow DAG. Out: lines that say what is there and what to type next.
    Raises: ConfigError if it holds something, or for a source that cannot be read; then nothing is made.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty", "Name a folder that does not exist yet")
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "pipelines" / "inlet.yml").write_text(INLET_YML + (source.text if source else NO_SOURCES))
    try:
        project = config.load(folder, is_unfinished=True)
    except ConfigError:
        shutil.rmtree(folder)
        raise
    (folder / EXAMPLE_FILE).write_text(EXAMPLE)
    (folder / ".gitignore").write_text(IGNORE)
    shutil.copytree(generate.HOME / "dbt", folder / "dbt", ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.copytree(generate.HOME / "expectations", folder / "expectations")
    if has_airflow:
        files = shutil.ignore_patterns("__pycache__")
        shutil.copytree(generate.HOME / AIRFLOW, folder / AIRFLOW, ignore=files)
    generate.write(project)
    notes = _foreign(project, source.name) if source else []
    steps = _steps(folder, source) + [f"inlet {n} --project {shlex.quote(str(folder))}" for n in ("generate", "run")]
    if has_airflow:
        steps.append(f"schedule it: {folder}/{AIRFLOW}/README.md says how Airflow gets the DAG in that folder")
    what = f"a project with the source {source.name}" if source else "a project without sources yet"
    return [f"{folder}: {what}.", *map("note: {}".format, notes), *(f"  {n}. {s}" for n, s in enumerate(steps, 1))]


def _foreign(project: config.Project, name: str) -> list[str]:
    """What the first source can't read of the files that are delivered already."""
    source = project.sources[name]
    if not storage.is_local(source.path):
        return []
    return foreign_files(project, source, (path for path, _ in listing(project, source)))


def _steps(folder: Path, source: FirstSource | None) -> list[str]:
    """What is left to do before the models can be generated."""
    if source is None:
        add = f"add a source to {folder}/pipelines/inlet.yml"
        return [add, f"write a contract for each table, as in {folder}/{EXAMPLE_FILE}"]
    codec = CODECS[source.codec]
    required = {n: why for n, why in getattr(codec.OPTIONS, "REQUIRED", {}).items() if n not in source.options}
    options = [
        f"write `options: {{{', '.join(f'{name}: ...' for name in required)}}}` into {folder}/pipelines/inlet.yml. "
        + ". ".join(required.values())
    ]
    return (options if required else []) + [ways_to_contracts(source.name, codec, folder)]
