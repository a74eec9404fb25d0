"""A project folder: pipelines/inlet.yml, pipelines/tables/*.yml, dbt/, expectations/. Reading it checks all of it.

lakehouse: lakehouse                  # a folder, or a place in a store: s3://bucket/lake; or a catalog (layout.py)
sources:
  shop:
    codec: qlik_json
    from: landing/shop/*.parquet      # a folder or pattern, any fsspec URL,
                                      # or {transport: lines, path: landing/shop/*.jsonl}
    tables: {shop.orders: SHOP.ORDERS}
    ignore: [SHOP.LOG_*]              # tables of the feed that are not wanted; or `capture`, those that are
    options: {...}                    # the codec's own, named in its docstring
storage:                              # where the store of an address is not the one that its scheme means
  s3://landing: {endpoint: "http://127.0.0.1:9000", region: eu-central-1}
metrics:                              # none unless said
  prometheus: build/inlet.prom        # a text file, written after each run
  openlineage: true                   # events of each run, sent as OPENLINEAGE_URL says; or a file: build/lineage.jsonl
"""

import fnmatch
import glob
import os
import re
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from inlet import layout, storage, store_errors
from inlet.errors import ConfigError, as_found, in_words
from inlet.source import Source, required
from inlet.table import Table, by_name
from inlet.table_column import TableColumn

VARIABLE = "INLET_LAKEHOUSE"  # names a lakehouse in the place of that of inlet.yml
KEPT = "inlet"  # the folder of what is next to tables that a catalog manages


class Metrics(BaseModel):
    """Whom a run tells how it went, beside its log. Both need `inlet[metrics]`."""

    model_config = ConfigDict(extra="forbid")
    prometheus: str | None = None
    openlineage: bool | str = False


class Project(BaseModel):
    """All that one project folder says. Made by `load`."""

    root: Path
    lakehouse: str
    sources: dict[str, Source]
    tables: dict[str, Table]  # by SCHEMA.TABLE
    metrics: Metrics = Metrics()
    stores: dict[str, storage.Store] = {}  # by how an address begins
    files: str = ""  # where relative paths of inlet.yml are; none: in the project folder
    _carried: dict[str, tuple] = PrivateAttr(default_factory=dict)  # of tables_of, which is asked again for each file

    def __setstate__(self, state: dict) -> None:
        """Spark's workers reach addresses as the run does."""
        super().__setstate__(state)
        storage.use(self.stores)

    def tables_of(self, source: Source) -> dict[str, Table]:
        """The contracts that this source may carry, by every SCHEMA.TABLE that they went by."""
        tables, asked, found = self._carried.get(source.name, (None, None, {}))
        if tables is not self.tables or asked is not source:  # `model_copy` gives a project other tables
            found = by_name(t for t in self.tables.values() if self.may_carry(source, t))
            self._carried[source.name] = self.tables, source, found
        return found

    def may_carry(self, source: Source, table: Table) -> bool:
        """Is a contract one of those of a source, and wanted?"""
        return (not table.sources or source.name in table.sources) and source.wants(table.table)

    @property
    def ignores(self) -> bool:
        """Is there a source that leaves out tables of its feed?"""
        return any(source.capture or source.ignore for source in self.sources.values())

    def table_names(self, given: list[str]) -> list[str]:
        """Names of contracts, given by name or as SCHEMA.TABLE. Raises: ConfigError for one that is not there."""
        names = {t.name: t.name for t in self.tables.values()} | {
            name: t.name for name, t in by_name(self.tables.values()).items()
        }
        return [known(names, name, "table") for name in given]

    def size_of(self, row: dict) -> int:
        """How many bytes a row of bronze.files brings; about so many for messages of a broker."""
        source = self.sources.get(row["source"])
        return (row["ofs_end"] - row["ofs_start"]) * (source.bytes_an_offset if source else 1)

    def resolve(self, path: str) -> str:
        """A path of inlet.yml as an absolute one; URLs stay as they are."""
        path = storage.as_path(path)
        return str((self.root / self.files / path).resolve()) if storage.is_local(path) else path

    def folder(self, source: Source) -> tuple[str, str]:
        """Where the files of a local source are: (folder, pattern in it). A `from` that names a folder means all files
        in it.
        """
        path = Path(self.resolve(source.path))
        parts = Path(source.path).parts
        first = next((n for n, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        if path.is_file():
            return str(path.parent), glob.escape(path.name)
        if path.is_dir() or first == len(parts):
            return str(path), "*"
        return self.resolve(str(Path(*parts[:first]))), "/".join(parts[first:])

    def lakehouse_path(self, *parts: str) -> str:
        """What the lakehouse, or a part of it, is called: an absolute path, an address."""
        return "/".join([self.resolve(self.lakehouse).rstrip("/"), *parts])

    def files_path(self, *parts: str) -> str:
        """The place of what is next to the tables."""
        kept = KEPT if storage.is_managed(self.lakehouse) else self.lakehouse
        return "/".join([self.resolve(kept).rstrip("/"), *parts])


def load(root: Path | str, is_unfinished: bool = False, lakehouse: str = "") -> Project:
    """Read and check a project folder. In: whether sources may lack contracts of the tables that they map, and options
    that only a person can tell, as for the commands that help to write them; a lakehouse in the place of its own.

    Raises: ConfigError, naming file, field, what was expected and found.
    """
    from inlet.codecs import CODECS, transports_of
    from inlet.codecs.codec import offers
    from inlet.codecs.results import CHECKPOINT

    root = Path(root).resolve()
    config = root / "pipelines" / "inlet.yml"
    if not config.is_file():
        raise ConfigError(
            f"{root} is no Inlet project: it has no pipelines/inlet.yml",
            "Name one with --project DIR, or make one with `inlet init DIR`",
        )
    fields = _yaml(config)
    unknown = set(map(str, fields)) - {"lakehouse", "sources", "storage", "metrics"}
    if unknown:
        raise ConfigError(
            f"{config}: unknown field {', '.join(sorted(unknown))}",
            "It knows `lakehouse`, `sources`, `storage` and `metrics`",
        )
    sources = {}
    for name, body in _fields(fields.get("sources"), f"{config}: sources").items():
        place = f"{config}: sources.{name}"
        sources[str(name)] = _build(Source, {"name": str(name), **_fields(body, place)}, place)
    tables = _contracts(root / "pipelines" / "tables")
    contracts = by_name(tables.values())
    for source in sources.values():
        if source.codec not in CODECS:
            raise ConfigError(
                f"{config}: sources.{source.name}.codec is {source.codec}, a format that Inlet does not read",
                f"Known codecs: {', '.join(CODECS)}",
            )
        source.path = storage.as_path(source.path)
        readable = transports_of(CODECS[source.codec])
        source.transport = source.transport or readable[0]
        if source.transport not in readable:
            raise ConfigError(
                f"{config}: sources.{source.name}.from: {source.transport} brings nothing that {source.codec} reads",
                f"Its transports are {', '.join(readable)}",
            )
        read_files(source, CODECS[source.codec].OPTIONS, root, f"{config}: sources.{source.name}.options")
        options = _build(CODECS[source.codec].OPTIONS, source.options, f"{config}: sources.{source.name}.options")
        if not is_unfinished:
            required(options, f"{config}: sources.{source.name}.options")
        if source.publish_at == CHECKPOINT and not offers(CODECS[source.codec], "HAS_CHECKPOINTS"):
            having = [name for name, codec in CODECS.items() if offers(codec, "HAS_CHECKPOINTS")]
            raise ConfigError(
                f"{config}: sources.{source.name}.publish_at is checkpoint, and {source.codec} has none",
                f"Leave it out; {', '.join(having)} has checkpoints",
            )
        for word, name in source.tables.items():
            lacks = (
                not any(fnmatch.fnmatchcase(one, name) for one in contracts)
                if "*" in name
                else name not in contracts and source.wants(name)
            )
            if lacks and not is_unfinished:
                raise ConfigError(
                    f"{config}: sources.{source.name}.tables maps {word} to {name}, which has no contract",
                    f"Write pipelines/tables/{name.split('.')[-1].lower()}.yml, or let `inlet import` write it"
                    + (f". Contracts are there for {', '.join(sorted(contracts))}" if contracts else ""),
                )
    stores = _stores(fields.get("storage"), f"{config}: storage")
    given = lakehouse or _of_environment() or fields.get("lakehouse", "lakehouse")
    named = _layout(given, f"{config}: lakehouse")
    lakehouse = named.lakehouse
    if not storage.is_managed(lakehouse) and not storage.is_reached(storage.as_path(lakehouse)):
        raise ConfigError(
            f"{config}: a lakehouse cannot lie at {store_errors.without_user(lakehouse)}",
            "Name a folder, or a place in a store with the interface of S3 (docs/stores.md)",
        )
    for start in stores:
        if not any(place.startswith(start) for place in (lakehouse, *(source.path for source in sources.values()))):
            raise ConfigError(
                f"{config}: storage.{start} fits neither the lakehouse nor the address of a source",
                "It is what `lakehouse`, or `from` of a source, begins with, as `s3://bucket` or `s3://`",
            )
    storage.use(stores)
    layout.use(named)
    return Project(
        root=root,
        lakehouse=lakehouse,
        files=named.files,
        stores=stores,
        sources=sources,
        tables=tables,
        metrics=_build(Metrics, _fields(fields.get("metrics"), f"{config}: metrics"), f"{config}: metrics"),
    )


def _of_environment() -> str:
    """The lakehouse that the environment names. Raises: ConfigError where that is a relative path, which dbt would read
    as one from its own folder."""
    place = os.environ.get(VARIABLE, "")
    if place and storage.is_local(place) and not os.path.isabs(place):
        raise ConfigError(f"{VARIABLE}={place} is no absolute path", "Name one, or an address")
    return place


def _layout(given, place: str) -> layout.Layout:
    """The layout of a lakehouse. Raises: ConfigError."""
    fields = layout.fields_of(given) if isinstance(given, str) else _fields(given, place)
    return _build(layout.Layout, fields, place)


def _stores(fields, place: str) -> dict[str, storage.Store]:
    """How stores are reached, by how addresses begin. Raises: ConfigError."""
    stores = {}
    for start, body in _fields(fields, place).items():
        if storage.is_local(start):
            raise ConfigError(
                f"{place}.{start} is no beginning of an address", "It looks like `s3://bucket`, or `s3://` for all"
            )
        takes = scheme.settings if (scheme := storage.scheme_of(start)) else ()
        if unknown := sorted(set(_fields(body, f"{place}.{start}")) & set(storage.Store.model_fields) - {*takes}):
            raise ConfigError(
                f"{place}.{start}: {unknown[0]} is nothing that Inlet sets for this kind of store",
                f"It sets {', '.join(takes) or 'nothing'}; the store's client reads others from the environment",
            )
        stores[start] = _build(storage.Store, _fields(body, f"{place}.{start}"), f"{place}.{start}")
    return stores


def _contracts(folder: Path) -> dict[str, Table]:
    """The contracts of a folder, by SCHEMA.TABLE. Raises: ConfigError, also where two have a name in common."""
    tables: dict[str, Table] = {}
    called: dict[str, str] = {}  # name -> SCHEMA.TABLE
    claimed: dict[str, str] = {}  # every SCHEMA.TABLE that one went by -> the present one
    for path in sorted(folder.glob("*.yml")):
        table = _build(Table, _fields(_yaml(path), str(path)), str(path))
        if table.table in tables:
            raise ConfigError(f"{path}: {table.table} is declared in another file, too", "Keep one file per table")
        if table.name in called:
            raise ConfigError(
                f"{path}: {table.table} is called {table.name}, as {called[table.name]} is", "Give it another name"
            )
        for name in table.names:
            if name in claimed:
                raise ConfigError(
                    f"{path}: {name}, a name of {table.table}, is also one of {claimed[name]}",
                    "A name that a second table has taken over cannot be told apart: leave the former one out of "
                    "`earlier`",
                )
        tables[table.table] = table
        called[table.name] = table.table
        claimed |= dict.fromkeys(table.names, table.table)
    return tables


def read_files(source: Source, model, root: Path, place: str) -> None:
    """Put the text of files of the project in place of their paths, in the options that may name one (`FILES` of their
    model: option -> how its text is read). Raises: ConfigError, which names the file, and its line where one is wrong.
    """
    for name, read in getattr(model, "FILES", {}).items():
        if not isinstance(path := source.options.get(name), str):
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
            read(text)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else f"{error}"
            raise ConfigError(f"{place}.{name}: {path}: {why}", f"It is read from {root}") from error
        source.options[name] = text


def source_fields(root: Path, name: str) -> dict:
    """A source of a project as its inlet.yml has it."""
    config = root / "pipelines" / "inlet.yml"
    return _fields(_fields(_yaml(config).get("sources"), str(config))[name], str(config))


def optional(path: Path, model):
    """A file of settings that may be missing, as its model. Raises: ConfigError, naming the file and the field."""
    return _build(model, _fields(_yaml(path), str(path)) if path.is_file() else {}, str(path))


def known(names: dict, name: str, what: str):
    """What goes by a name. Raises: ConfigError that lists the names there are."""
    if name not in names:
        raise ConfigError(f"There is no {what} {name}", f"There are: {', '.join(sorted(names)) or 'none'}")
    return names[name]


class Loader(yaml.SafeLoader):
    """Only `true` and `false` are booleans, as in YAML 1.2: a column may be called NO, or ON. Only plain decimal digits
    are a number: 007, 0x1F and 12:30 are text, where YAML 1.1 makes 7, 31 and 750 of them."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, word) for tag, word in words if not tag.endswith((":bool", ":int"))]
    for first, words in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))


def _yaml(path: Path) -> dict:
    try:
        fields = yaml.load(path.read_text(encoding="utf-8"), Loader) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", "Fix the line it names") from error
    if not isinstance(fields, dict):
        raise ConfigError(f"{path}: expected fields, found {as_found(fields)}", "See docs/architecture.md")
    return fields


def _fields(fields, place: str) -> dict:
    if not isinstance(fields, (dict, type(None))):
        raise ConfigError(f"{place}: expected fields, found {as_found(fields)}", "See docs/a_source_from_zero.md")
    return {str(name): value for name, value in (fields or {}).items()}


def _build(model, fields: dict, place: str):
    try:
        return model(**fields)
    except (ValidationError, TypeError) as error:
        text = (
            in_words(
                error.errors(), [f.alias or name for name, f in model.model_fields.items()], TableColumn.model_fields
            )
            if isinstance(error, ValidationError)
            else str(error)
        )
        raise ConfigError(f"{place}: {text}", "Fix it and run `inlet doctor`") from error
