"""What `pipelines/databricks.yml` says of a project's job on Databricks. The file may be missing; every field has a
default.

    job: inlet                              # name of the job and of the bundle
    schedule: "0 0/15 * * * ?"              # Quartz: seconds minutes hours day month weekday; none: by hand alone
    timezone: UTC
    file_arrival: /Volumes/main/bronze/landing/   # instead of `schedule`: run when files arrive there
    groups:                                 # a bronze task for each, as in airflow.yml
      depots: [depot_tokyo, depot_osaka]
    catalog: main                           # of Unity Catalog; the target dev has main_dev
    prefix: ""                              # of the schemas: cdc_ makes main.cdc_bronze, main.cdc_silver, ...
    warehouse: ""                           # id of a SQL warehouse: a last task builds dbt/models/marts there
    environment_version: "5"
    wheel: dist/inlet-0.1.0-py3-none-any.whl      # below the project, or below /Volumes or /Workspace
    tries: 5                                # of what may pass by itself (exit code 6), within a task
    timeout_minutes: 360                    # of one task
    warn_minutes: 120                       # a run that takes longer is reported
    notify: [ops@example.com]               # of a failure, and of a run that takes long
    permissions:                            # on the job
      - {group: engineers, level: CAN_MANAGE_RUN}
    readers: [analysts]                     # may read the public views, and the marts
    targets:                                # what differs there
      dev: {host: "https://dev.example.com", catalog: sandbox, warehouse: "", permissions: [], paused: true}
      prod: {host: "https://prod.example.com", run_as: "<application id>", root_path: /Workspace/inlet}

Source: Databricks' reference of bundles and of the Jobs API 2.2; Quartz 2.3, CronTrigger.
"""

import re
import zoneinfo
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from inlet import __version__, config
from inlet.config import Project
from inlet.errors import ConfigError

FILE = "pipelines/databricks.yml"
REST = "rest"  # the group of the sources that no group names
WAREHOUSE = r"[0-9a-f]{16}"
LEAST_VERSION = 4  # of an environment: the first whose Spark has VARIANT, and its Python is 3.12
WEEKDAY = "([1-7]|SUN|MON|TUE|WED|THU|FRI|SAT)"
QUARTZ = {  # field -> one value of it, and what else may stand there
    "seconds": (r"[0-5]?\d", ""),
    "minutes": (r"[0-5]?\d", ""),
    "hours": (r"(2[0-3]|[01]?\d)", ""),
    "day of the month": (r"(3[01]|[12]\d|0?[1-9])", r"|\?|L(-\d+)?|LW|\d+W"),
    "month": (r"(1[0-2]|0?[1-9]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)", ""),
    "day of the week": (WEEKDAY, rf"|\?|L|{WEEKDAY}(L|#[1-5])"),
    "year": (r"(19[7-9]\d|20\d\d)", ""),
}


def quartz_fault(text: str) -> str:
    """Why a text is no cron expression of Quartz; empty where it is one.

    >>> quartz_fault("0 0/15 * * * ?"), quartz_fault("0 30 2 ? * MON-FRI 2027")
    ('', '')
    >>> quartz_fault("0 0 25 * * ?")
    'hours: 25 is no value of it'
    """
    words = text.upper().split()
    if len(words) not in (6, 7):
        return (
            f"expected the 6 or 7 fields of Quartz (seconds minutes hours day month weekday, maybe year), found "
            f"{len(words)}; every 15 minutes is 0 0/15 * * * ?"
        )
    for (name, (value, other)), word in zip(QUARTZ.items(), words):
        one = rf"((\*|{value}(-{value})?)(/\d+)?{other})"
        if not re.fullmatch(rf"{one}(,{one})*", word):
            return f"{name}: {word} is no value of it"
    if (words[3] == "?") == (words[5] == "?"):
        return "one of day and weekday, and only one, has to be ?"
    return ""


def _literal(text: str) -> str:
    """A name as it stands: a bundle replaces what looks like a variable."""
    if not text.strip() or not text.isprintable() or "${" in text or len(text) > 255:
        raise ValueError(f"expected a name of up to 255 printable characters without ${{, found {text[:40]!r}")
    return text


def _matching(pattern: str, what: str) -> Any:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {what}, found {text[:40]!r}")
        return text

    return AfterValidator(check)


Principal = Annotated[str, AfterValidator(_literal)]
Email = Annotated[str, _matching(r"[^\s@${}]+@[^\s@${}]+\.[^\s@${}]+", "an address of e-mail")]
Catalog = Annotated[str, _matching(r"[a-z0-9_-]{1,200}", "a catalog: lower-case letters, digits, _ and -")]
Warehouse = Annotated[str, _matching(f"({WAREHOUSE})?", "the id of a SQL warehouse, 16 hexadecimal digits")]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Permission(Settings):
    """Who may do what with the job."""

    level: Literal["CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE"]
    group: Principal | None = None
    user: Principal | None = None
    service_principal: Principal | None = None

    @model_validator(mode="after")
    def _one(self) -> "Permission":
        if len([one for one in (self.group, self.user, self.service_principal) if one]) != 1:
            raise ValueError("expected one of group, user and service_principal")
        return self


class Target(Settings):
    """What differs in a target. Each field that is left out is as in all."""

    host: Annotated[str, _matching(r"https://[A-Za-z0-9.-]+/?", "the address of a workspace, https://...")] | None = (
        None
    )
    catalog: Catalog | None = None
    warehouse: Warehouse | None = None
    permissions: list[Permission] | None = None
    paused: bool | None = None
    run_as: Principal | None = None  # a user's address, or the application id of a service principal
    root_path: Annotated[str, _matching(r"/Workspace/[\w@./ -]+", "a folder below /Workspace")] | None = None


class Targets(Settings):
    dev: Target = Target()
    prod: Target = Target()


class DatabricksSettings(Settings):
    """All that the file says. `targets` are complete: what a target leaves out is filled in."""

    job: Annotated[str, _matching(r"[A-Za-z0-9_.-]{1,100}", "letters, digits and _ . -")] = "inlet"
    schedule: str | None = None
    timezone: str = "UTC"
    file_arrival: str | None = None
    groups: dict[str, list[str]] = {}
    catalog: Catalog = "main"
    prefix: Annotated[str, _matching(r"[a-z0-9_]{0,40}", "lower-case letters, digits and _")] = ""
    warehouse: Warehouse = ""
    environment_version: Annotated[str, _matching(r"[1-9]\d*", "the number of an environment")] = "5"
    wheel: Annotated[
        str,
        _matching(
            r"(/(Volumes|Workspace)/)?\w[\w./+-]*\.whl",
            "the path of a wheel: below the project, /Volumes or /Workspace",
        ),
    ] = f"dist/inlet-{__version__}-py3-none-any.whl"
    tries: int = Field(5, ge=1)
    timeout_minutes: int = Field(360, ge=1)
    warn_minutes: int = Field(120, ge=1)
    notify: list[Email] = []
    permissions: list[Permission] = []
    readers: list[Principal] = []
    targets: Targets = Targets()

    @field_validator("groups", mode="before")
    @classmethod
    def _names(cls, groups: Any) -> Any:
        """Names are text, as inlet.yml has them: a source may be called 7."""
        if not isinstance(groups, dict):
            return groups
        return {
            str(group): [str(one) if type(one) is int else one for one in members] if type(members) is list else members
            for group, members in groups.items()
        }

    @field_validator("schedule")
    @classmethod
    def _schedule(cls, text: str | None) -> str | None:
        if text and (fault := quartz_fault(text)):
            raise ValueError(fault)
        return text

    @field_validator("timezone")
    @classmethod
    def _timezone(cls, name: str) -> str:
        if name not in zoneinfo.available_timezones():
            raise ValueError(f"expected a time zone as Asia/Tokyo, found {name[:40]!r}")
        return name

    @field_validator("file_arrival")
    @classmethod
    def _url(cls, url: str | None) -> str | None:
        place = r"(/Volumes/[\w-]+/[\w-]+/[\w-]+|(s3|abfss|gs)://[\w@.-]+)(/[\w.=/-]*)?"
        if url and not re.fullmatch(place, url):
            raise ValueError(
                f"expected a folder of a volume (/Volumes/...) or of a store (s3://...), found {url[:40]!r}"
            )
        return url

    @field_validator("environment_version")
    @classmethod
    def _version(cls, version: str) -> str:
        if int(version) < LEAST_VERSION:
            raise ValueError(f"expected {LEAST_VERSION} or later, whose Spark has VARIANT, found {version}")
        return version

    @model_validator(mode="after")
    def _whole(self) -> "DatabricksSettings":
        if self.schedule and self.file_arrival:
            raise ValueError("schedule and file_arrival are both given; a job has one of them")
        of_all: dict[str, Any] = {"catalog": self.catalog, "warehouse": self.warehouse, "permissions": self.permissions}
        others: dict[str, dict[str, Any]] = {
            "dev": {"catalog": f"{self.catalog}_dev", "paused": True},
            "prod": {"paused": False},
        }
        filled = {
            name: getattr(self.targets, name).model_copy(
                update={
                    field: value
                    for field, value in (of_all | other).items()
                    if getattr(getattr(self.targets, name), field) is None
                }
            )
            for name, other in others.items()
        }
        self.targets = Targets.model_construct(**filled)
        dev, prod = self.targets.dev, self.targets.prod
        if (dev.host, dev.catalog) == (prod.host, prod.catalog):
            raise ValueError(
                f"targets: dev and prod would both write to the catalog {dev.catalog}; name another for dev"
            )
        if bool(dev.warehouse) != bool(prod.warehouse):
            raise ValueError("targets: dev and prod both have a warehouse for the marts, or neither of them")
        return self


def read(project: Project) -> DatabricksSettings:
    """The settings of a project. Raises: ConfigError, which names file and field."""
    path = project.root / FILE
    settings = config.optional(path, DatabricksSettings)
    settings.groups = grouped(settings.groups, list(project.sources), str(path))
    return settings


def grouped(groups: dict[str, list[str]], sources: list[str], place: str) -> dict[str, list[str]]:
    """Groups of sources, those that no group names as one of their own; none for none. In: the file that says them.
    Raises: ConfigError. The DAG of Airflow, which cannot import Inlet, groups in the same way: a test compares them.
    """
    taken: dict[str, str] = {}
    for group, members in groups.items():
        if not re.fullmatch(r"[A-Za-z0-9_]{1,90}", group) or not members:
            raise ConfigError(
                f"{place}: groups.{group}: expected a name of letters, digits and _, and a list of sources",
                "Name the group so, and at least one source",
            )
        for source in members:
            if source not in sources:
                raise ConfigError(
                    f"{place}: groups.{group} names the source {source}, which pipelines/inlet.yml does not have",
                    f"It has {', '.join(sources) or 'none'}: take {source} out of the group, or put the source back",
                )
            if source in taken:
                raise ConfigError(
                    f"{place}: {source} is in the groups {taken[source]} and {group}", "Leave it in one of them"
                )
            taken[source] = group
    others = [source for source in sources if source not in taken]
    if others and REST in groups:
        raise ConfigError(
            f"{place}: {', '.join(others)} in no group, and {REST} is the name of the group of such sources",
            f"Add them to a group, or give the group {REST} another name",
        )
    return groups | ({REST: others} if groups and others else {})
