"""What the schemas of a lakehouse are called. Inlet's SQL says `bronze.files`; in a lakehouse with a layout that is
`cdc_bronze.files` of the catalog `main`.

    lakehouse: catalog://main/cdc_                                               # of inlet.yml
    lakehouse: {location: "s3://bucket/lake", catalog: main, prefix: cdc_}

The first is a lakehouse whose catalog says where its tables lie. No program may open them by their path, as Unity
Catalog has it (`storage.is_managed`). What is no table is in volumes of the schema bronze. Relative paths of inlet.yml
are below them: `landing/shop/*.json` is `/Volumes/main/cdc_bronze/landing/shop/*.json`. `files` names another folder.
"""

import re

from pydantic import BaseModel, ConfigDict, Field, model_validator

from inlet.storage import MANAGED, is_managed

SCHEMAS = ("bronze", "silver", "gold", "checks", "public")
OURS = "|".join(SCHEMAS)
NAME = re.compile(  # in a statement of Spark SQL, past texts, comments and other names in quotes
    rf"""(?<!\w) r(?:'[^']*' | "[^"]*") | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | --[^\n]* | /\*.*?\*/
    | (?<![\w.:]) (?P<quote>`?) (?P<schema>{OURS}) (?P=quote) (?= \s*\. )
    | `(?:[^`]|``)*`
    | (?P<before> \b (?: (?:tables?|views|functions|columns)(?:\s+extended)?\s+(?:in|from)
                       | (?:database|schema)(?:\s+if\s+(?:not\s+)?exists|\s+extended)? | use ) \s+ )
      (?P<mark>`?) (?P<alone>{OURS}) (?P=mark) (?![\w.]|\s*\.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


class Layout(BaseModel):
    """Where the tables of a lakehouse are, by name and by place."""

    model_config = ConfigDict(extra="forbid")
    location: str = ""  # a folder, or a place in a store; without it the catalog says where its tables lie
    catalog: str = Field("", pattern=r"^([\w-]+)?$")  # none: that of the session
    prefix: str = Field("", pattern=r"^([A-Za-z_]\w*)?$")
    files: str = ""  # where relative paths are, where the catalog says where its tables lie

    @model_validator(mode="after")
    def _has_a_place(self) -> "Layout":
        if not (self.location or self.catalog):
            raise ValueError("expected `location` or `catalog`")
        if self.location and self.files:
            raise ValueError("`files` has no effect next to `location`, which holds them, too")
        if not self.location and not self.files:
            self.files = f"/Volumes/{self.catalog}/{self.prefix}bronze"
        return self

    @property
    def lakehouse(self) -> str:
        """What the lakehouse is called: its place, or the address of its catalog."""
        return self.location or f"{MANAGED}{self.catalog}/{self.prefix}"


def fields_of(place: str) -> dict[str, str]:
    """The fields of the layout that a place of a lakehouse says.

    >>> fields_of("catalog://main/cdc_"), fields_of("s3://bucket/lake")
    ({'catalog': 'main', 'prefix': 'cdc_'}, {'location': 's3://bucket/lake'})
    """
    if not is_managed(place):
        return {"location": place}
    catalog, _, prefix = place.removeprefix(MANAGED).partition("/")
    return {"catalog": catalog, "prefix": prefix}


_layout = Layout(location="lakehouse")  # of the project that was read last


def use(layout: Layout) -> None:
    """Name tables so from now on, in this process."""
    global _layout
    _layout = layout


def catalog() -> str:
    """The catalog of the lakehouse; "" for that of the session."""
    return _layout.catalog


def of(name: str) -> str:
    """What a schema, or a table of one, is called. In: as Inlet says it, `gold` or `gold.applied`.

    >>> use(Layout(location="lake", prefix="cdc_")); of("gold.applied"), of("gold"), of("quarter.orders")
    ('cdc_gold.applied', 'cdc_gold', 'quarter.orders')
    """
    return f"{_layout.prefix}{name}" if name.partition(".")[0] in SCHEMAS else name


def in_sql(statement: str) -> str:
    """A statement with the names of this layout.

    >>> use(Layout(location="lake", prefix="cdc_")); in_sql("select 'gold.a', g.gold.x from gold.a g -- of gold.a")
    "select 'gold.a', g.gold.x from cdc_gold.a g -- of gold.a"
    >>> in_sql("show tables in gold like 'a'"), in_sql("select * from main.gold.a, `gold`.`b`, `of gold.a`")
    ("show tables in cdc_gold like 'a'", 'select * from main.gold.a, `cdc_gold`.`b`, `of gold.a`')
    """
    if not _layout.prefix:
        return statement

    def named(match: re.Match) -> str:
        if match["schema"]:
            return f"{match['quote']}{_layout.prefix}{match['schema']}{match['quote']}"
        if match["alone"]:
            return f"{match['before']}{match['mark']}{_layout.prefix}{match['alone']}{match['mark']}"
        return match[0]

    return NAME.sub(named, statement)
