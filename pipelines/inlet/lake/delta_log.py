"""The log of a Delta table, read without Spark: the files that each version needs, and when others were removed.

delta-rs gives the data files of a version and not its deletion vectors; its VACUUM removes vectors that are in use.
Source: Delta's protocol, "Action Reconciliation", "Checkpoints", "Deletion Vectors".
"""

import base64
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from inlet import storage

COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
OTHER_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*|_sidecars")  # of a form that no table of Inlet has
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
FROM_Z85 = str.maketrans(Z85, B85)
# commits that leave the rows as they are
UPKEEP = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "CLUSTER BY")
DAY = 86400.0


class LogLacks(Exception):
    """The log does not say what was asked."""


class DeltaLog:
    """The log of one table. In: its path or address."""

    def __init__(self, place: str):
        self.store, self.path = storage.open_store(place)
        self.store.invalidate_cache()  # of listings
        self.commits: dict[int, tuple[str, float]] = {}  # version -> file, and the time it was written
        parts: dict[int, list[tuple[str, int]]] = {}
        self.lacks = ""
        for info in self.store.ls(f"{self.path}/_delta_log", detail=True):
            name = info["name"].rsplit("/", 1)[-1]
            if match := COMMIT.fullmatch(name):
                self.commits[int(match[1])] = info["name"], written_at(info)
            elif match := CHECKPOINT.fullmatch(name):
                parts.setdefault(int(match[1]), []).append((info["name"], int(match[2] or 1)))
            elif OTHER_CHECKPOINT.fullmatch(name):
                self.lacks = f"{name} is of a form of checkpoints that Inlet does not read"
        self.checkpoints = {
            version: [name for name, _ in some] for version, some in parts.items() if len(some) == some[0][1]
        }
        self._actions: dict[int, list[dict]] = {}

    @property
    def newest(self) -> int:
        return max(self.commits, default=-1)

    @property
    def num_files(self) -> int:
        return len(self.commits) + sum(map(len, self.checkpoints.values()))

    @property
    def num_commits(self) -> int:
        """Commits after the last checkpoint."""
        last = max(self.checkpoints, default=-1)
        return sum(version > last for version in self.commits)

    def files(self, versions: Iterable[int]) -> dict[int, set[str]]:
        """Version -> paths below the table of its data files and deletion vectors. Raises: LogLacks for a version that
        the log cannot give any more."""
        if self.lacks:
            raise LogLacks(self.lacks)
        found: dict[int, set[str]] = {}
        at, state = -1, set[tuple[str, str]]()
        for version in sorted(set(versions)):
            start = max((v for v in self.checkpoints if v <= version), default=-1)
            if start > at:
                at, state = start, set(self._checkpoint(start))
            for number in range(at + 1, version + 1):
                if number not in self.commits:
                    raise LogLacks(f"version {version} cannot be read any more: the log lacks version {number}")
                for action in self.actions(number):
                    if add := action.get("add"):
                        state.add(_key(add))
                    elif remove := action.get("remove"):
                        state.discard(_key(remove))
            at = version
            found[version] = {path for key in state for path in key if path}
        return found

    def removed(self, since: float) -> dict[str, float]:
        """Path below the table -> when it was removed, of files and deletion vectors that versions since a time lack.
        Raises: LogLacks where commits of that time are gone."""
        if not (0 in self.commits or any(written < since for _, written in self.commits.values())):
            raise LogLacks("its log does not go back as far")
        times: dict[str, float] = {}
        for version, (_, written) in self.commits.items():
            if written < since - DAY:  # clocks of writers and stores differ
                continue
            for action in self.actions(version):
                if remove := action.get("remove"):
                    at = max((remove.get("deletionTimestamp") or 0) / 1000, written)
                    times |= {path: at for path in _key(remove) if path}
        return times

    def last_change(self) -> int:
        """The version of the last commit that has changed rows; the first one there is where all were upkeep."""
        for version in range(self.newest, -1, -1):
            if version not in self.commits:
                return version + 1
            if self._operation(version) not in UPKEEP:
                return version
        return 0

    def age_seconds(self, version: int, now: float) -> float:
        """How long ago a version was written, of which there is a commit."""
        return now - self.commits[version][1]

    def actions(self, version: int) -> list[dict]:
        """The actions of a commit that is there."""
        if version not in self._actions:
            lines = self.store.cat_file(self.commits[version][0]).splitlines()
            self._actions[version] = [_short(json.loads(line)) for line in lines if line.strip()]
        return self._actions[version]

    def _operation(self, version: int) -> str:
        return next((a["commitInfo"].get("operation", "") for a in self.actions(version) if "commitInfo" in a), "")

    def _checkpoint(self, version: int) -> Iterator[tuple[str, str]]:
        import pyarrow.parquet as pq

        for name in self.checkpoints[version]:
            with self.store.open(name, "rb") as file:
                parquet = pq.ParquetFile(file)
                columns = ["add.path", *(["add.deletionVector"] if _has_vectors(parquet) else [])]
                for row in parquet.read(columns=columns).column("add").to_pylist():
                    if row and row["path"]:
                        yield _key(row)


def _has_vectors(parquet) -> bool:
    add = parquet.schema_arrow.field("add").type
    return add.get_field_index("deletionVector") >= 0


def _short(action: dict) -> dict:
    """An action without what is long and not asked for."""
    for kind in ("add", "remove"):
        if kind in action:
            kept = ("path", "deletionVector", "deletionTimestamp")
            return {kind: {name: value for name, value in action[kind].items() if name in kept}}
    return action


def _key(action: dict) -> tuple[str, str]:
    """What identifies a file in the log: its path, and the file of its deletion vector, "" where it has none."""
    return unquote(action["path"]), _vector_path(action.get("deletionVector") or {})


def _vector_path(vector: dict) -> str:
    """The path below the table of a deletion vector.

    >>> _vector_path({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"})
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """
    kind, text = vector.get("storageType"), vector.get("pathOrInlineDv") or ""
    if kind == "p":
        return text
    if kind != "u":  # none, or one within the log
        return ""
    prefix, name = text[:-20], uuid.UUID(bytes=base64.b85decode(text[-20:].translate(FROM_Z85)))
    return f"{prefix}/deletion_vector_{name}.bin" if prefix else f"deletion_vector_{name}.bin"


def written_at(info: dict) -> float:
    """When a file was written, as its store says; now where it does not say."""
    words = ("mtime", "LastModified", "updated", "last_modified", "created")
    at = next((info[word] for word in words if info.get(word)), None)
    return time.time() if at is None else float(at) if isinstance(at, (int, float)) else at.timestamp()
