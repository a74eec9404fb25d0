"""What `inlet import` does with what definition files say of their source itself: where inlet.yml lacks it, the whole
source is printed as it should be, what contradicts it is refused. inlet.yml is a person's, and is not written.
"""

from typing import Any

import yaml

from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.codecs.results import Settings
from inlet.errors import ConfigError
from inlet.source import Source

WIDTH = 120


def as_told(source: Source, files: list[tuple[str, bytes]]) -> Source:
    """A source with the options that definition files tell, where inlet.yml lacks them. In: names and bytes of files.
    Raises: ConfigError where they contradict it.
    """
    settings = _told(source, files)
    options = _lacking(source, settings).get("options", {})
    return source.model_copy(update={"options": source.options | options})


def lines(source: Source, files: list[tuple[str, bytes]], fields: dict[str, Any]) -> list[str]:
    """What a person has to write into inlet.yml, and to know. In: the source, also as inlet.yml has it. Raises:
    ConfigError."""
    settings = _told(source, files)
    lacking = _lacking(source, settings)
    whole = fields | lacking | {"options": (fields.get("options") or {}) | lacking.get("options", {})}
    if "tables" in lacking:  # patterns are none of the definition's, and stay
        whole["tables"] = {word: table for word, table in source.tables.items() if "*" in word} | lacking["tables"]
    what = ", ".join([*lacking.get("options", {}), *(["tables"] if "tables" in lacking else [])])
    text = _dump({"sources": {source.name: {name: value for name, value in whole.items() if value != {}}}})
    required = getattr(CODECS[source.codec].OPTIONS, "REQUIRED", {})
    given = source.options | lacking.get("options", {})
    missing = [name for name in required if given.get(name) is None]
    asked = [f"option {name} is missing. {required[name]}" for name in missing]
    open_ = open_options(source, given)
    return (
        ([f"pipelines/inlet.yml lacks {what}. Write the source so:\n{text}"] if lacking else [])
        + [f"note: {note}" for note in asked + settings.notes]
        + ([open_] if open_ else [])
    )


def open_options(source: Source, given: dict[str, Any]) -> str:
    """Options of a source that are `auto` still; "" where none is. In: options as they will be."""
    fields = CODECS[source.codec].OPTIONS.model_fields
    names = [name for name, field in fields.items() if given.get(name, field.default) == "auto"]
    if not names:
        return ""
    return f"options of {source.name} that stay auto: {', '.join(names)} (docs/formats/{source.codec}.md)"


def _told(source: Source, files: list[tuple[str, bytes]]) -> Settings:
    codec = CODECS[source.codec]
    return codec.settings_of(files, source) if offers(codec, "settings_of") else Settings({}, {}, "", [])


def _lacking(source: Source, settings: Settings) -> dict[str, Any]:
    """What inlet.yml should say of a source, and does not. Raises: ConfigError where it says something else."""
    defaults = CODECS[source.codec].OPTIONS().model_dump()
    options = {}
    for name, (value, said) in settings.options.items():
        given = source.options.get(name, "auto")
        if given not in ("auto", value):
            raise ConfigError(
                f"sources.{source.name}.options: {name} is {_plain(given)}, and {said} says {_plain(value)}",
                "Correct it, or give the definition that the files of this source were written by",
            )
        default = defaults[name]
        is_default = (list(default) if isinstance(default, tuple) else default) == value
        if given != value and (name in source.options or not is_default):
            options[name] = value
    _check_tables(source, settings)
    found: dict[str, Any] = {"options": options} if options else {}
    mapped = source.tables.values()
    is_mapped = all(table in mapped or source.table_of(word) == table for word, table in settings.tables.items())
    return found | ({} if is_mapped else {"tables": settings.tables})


def _check_tables(source: Source, settings: Settings) -> None:
    """Raises: ConfigError where `tables` maps another way, has other tables, or has them in another order."""
    given = [table for word, table in source.tables.items() if "*" not in word]
    wrong = [w for w, table in settings.tables.items() if source.table_of(w) not in (None, table)]
    defined = [table for table in settings.tables.values() if table in given]
    if settings.tables and (wrong or given != defined):
        raise ConfigError(
            f"sources.{source.name}.tables has {_plain(source.tables)}, and {settings.tables_said} "
            f"{_plain(settings.tables)}",
            "Correct it, the order too, in which journals have the columns; or give the definition that they have",
        )


def _dump(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False, default_flow_style=None, width=WIDTH).rstrip()


def _plain(value: Any) -> str:
    text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, default_flow_style=True, width=10_000)
    return text.removesuffix("...\n").strip().strip("'")
