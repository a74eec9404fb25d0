"""A file that was landed damaged and is delivered anew under its name: a batch that reads it again from its first byte.

It is read as a new file is, behind the one before it as that is known now; its units have the batch's number behind
their ids. Files after it that were read already stay as they are. What the feed's marks have judged stays judged: only
what waits for a verdict is judged anew, and of what was landed before nothing waits any more.
"""

import json
from pathlib import Path
from typing import NamedTuple, NoReturn

from inlet import lake, storage
from inlet.bronze import agreement, framing, history, ordered, rejudged
from inlet.bronze.companions import companions_of, content_of, fails, num_records
from inlet.bronze.files import has_settled, is_compressed, listing, open_file, unpacked
from inlet.bronze.guard import Died, apart
from inlet.bronze.history import REREAD, History, Reading
from inlet.bronze.plan import Plan
from inlet.bronze.transports import TRANSPORTS
from inlet.codecs import CODECS
from inlet.codecs.codec import UNDECIDED, offers
from inlet.codecs.results import ABANDONED
from inlet.config import Project
from inlet.errors import ConfigError, Reject, TryAgain
from inlet.source import ROW_TRANSPORTS, Source
from inlet.sql import plain_literal

AGAIN = "Deliver the whole file under its name, then `inlet replay --file` again"
STAYS = (
    "What silver holds of it stays. If this is another file under an old name, as of a rotated log, give it a name of "
    "its own: `inlet run` reads it then. If the first one was damaged, only a lakehouse that is built again from the "
    "good files is right"
)


class Redelivered(NamedTuple):
    """What reads a file again."""

    plan: Plan | None  # None where the file is as it was landed: there is nothing to read again
    path: str
    read_behind: str | None = None  # the file after it, where that was read with other knowledge than is there now


def plan_again(project: Project, file: str, only: str | None = None) -> Redelivered:
    """What reads a file again from its first byte, as it lies in its source's folder now. In: its path or address; the
    source, where several read it. Nothing is written.

    Raises: ConfigError where there is nothing to read, or where the result would not be that of the good file; TryAgain
    where a source's files cannot be listed.
    """
    past = History(project)
    source, path, info = _listed(project, past, file, only)
    rows = past.of_source(source.name)
    good = {path: row for (_, path), row in history.good(rows).items()}
    known = good.get(path)
    if not known or not known["ofs_end"]:
        raise ConfigError(f"{path} was never landed: there is nothing to take anew", "`inlet run` reads it")
    if _gives_parts(source):
        raise ConfigError(
            f"{path}: codec {source.codec} makes changes of several records, which cannot be told apart from those "
            "that were read before",
            "Deliver what was rejected in a new file",
        )
    batch_id = past.next_batch
    companions = _companions(project, source, path)
    said = num_records(source, path, companions)
    info |= {"batch_id": batch_id, "companions": companions, "num_records": said}
    file_ = ordered.Listed(source, path, info, None, _is_whole(source, path, info))
    before, place, last = _order(project, file_, known, good)
    row = _planned(project, file_, before)
    row |= {"source": source.name, "path": path, "batch_id": batch_id}
    row |= {"size_bytes": info["size"], "modified_at": info["modified"]}
    began = max(row["batch_id"] for row in rows if row["path"] == path and row.begins_file)
    first = next(row for row in rows if (row["path"], row["batch_id"]) == (path, began))
    is_same = (row["sha256"], row["ofs_end"]) == (known["sha256"], known["ofs_end"]) and _start(row) == _start(first)
    if is_same and (known is first or "problem" not in json.loads(known["context"] or "{}")):  # else its end came late
        return Redelivered(None, path)
    num_good = _check_agreement(project, file_, row, rows, began)
    is_read_on = place is not None and last > place
    next_place = place + 1 if is_read_on and place is not None else None
    if row.get("verdicts"):
        row = rejudged.judge(source, path, row, rows, num_good, is_read_on)
    behind = next((p for p, r in good.items() if is_read_on and _place(source, r) == next_place), None)
    is_other = behind and _known_at_end(row) != _known_at_end(known)
    return Redelivered(
        Plan(batch_id, [{"verdicts": None} | row | {"cause": REREAD}]), path, behind if is_other else None
    )


def _gives_parts(source: Source) -> bool:
    """May records of a source's files be parts of changes? Of a codec that reads messages, too, only theirs are."""
    codec = CODECS[source.codec]
    return offers(codec, "join") and (source.brings_messages or not offers(codec, "decode_message"))


def _listed(project: Project, past: History, file: str, only: str | None) -> tuple[Source, str, dict]:
    """The source of a file, its path there, and what is listed of it."""
    names = [str(Path(file).absolute()), str(Path(file).resolve())] if storage.is_local(file) else [file]
    paths = {name.removeprefix(f"{project.root}/") for name in names} | {file}
    found = []
    for source in project.sources.values():
        if source.broker or only not in (None, source.name):
            continue
        try:
            found += [(source, path, info) for path, info in listing(project, source) if path in paths]
        except (OSError, ValueError) as error:
            raise TryAgain(f"{source.path}: {error}", "Try again once it can be listed") from error
    if not found:
        brokers = [source.name for source in project.sources.values() if source.broker]
        if ranges := past.of_files(brokers, paths):
            raise ConfigError(
                f"{file} is a partition of {ranges[0]['source']}, whose messages a broker keeps",
                "Only files are delivered anew; `inlet replay` decodes rejected messages again",
            )
        raise ConfigError(
            f"Source {only} has no file {file}" if only else f"No source of pipelines/inlet.yml has a file {file}",
            "Put the good file in the place of the damaged one, in its source's folder and under its name",
        )
    if len(found) > 1:
        names = [source.name for source, _, _ in found]
        raise ConfigError(f"{', '.join(names)} read {file}", "Say which one is to take it anew with --source")
    source, path, info = found[0]
    if why := info["held"] or (info["problem"] and json.loads(info["problem"]["problem"])["found"]):
        raise ConfigError(f"{path} cannot be read: {why}", AGAIN)
    return source, path, info


def _companions(project: Project, source: Source, path: str) -> dict[str, dict]:
    names = companions_of(source, path)
    if names is None:
        raise ConfigError(f"{path} comes with another file", "Name that one: it is read with what lies beside it")
    if isinstance(names, Reject):
        raise ConfigError(f"{path}: it waits for {fails(source, names)}", "Report it with the file")
    content = content_of(project, source, path, names, True)
    if isinstance(content, str):
        raise ConfigError(f"{path} waits for {content}", "Deliver that, too, then `inlet replay --file` again")
    return content


def _is_whole(source: Source, path: str, info: dict) -> bool:
    """Will no more follow what is there? Of a file that only its rest tells whole, the one who asks says so."""
    has_no_end = is_compressed(path) or source.transport in ("avro", "whole_file")
    return has_no_end or has_settled(source, info["modified"])


def _order(
    project: Project, file: ordered.Listed, known: dict, good: dict[str, Reading]
) -> tuple[dict | None, int | None, int]:
    """What is known at the end of the file before one, its place, and the last place that was read; where files do not
    follow each other, nothing.
    """
    source, path = file.source, file.path
    if not ordered.is_ordered(source):
        return None, None, 0
    order = ordered.Order(source, {p: row for p, row in good.items() if p != path}, [])
    try:
        place = apart(lambda: framing.attempt(ordered.place, project, CODECS[source.codec], file), path)
    except Died as death:
        _not_better(path, str(death))
    if not isinstance(place, int):
        _not_better(path, place if isinstance(place, str) else "it does not say which file of its source it is")
    others = order.ends.keys() | order.stuck
    if _place(source, known) not in (None, place):
        raise ConfigError(
            f"{path} is file {place} of {source.name} now; what was read under this name is file "
            f"{_place(source, known)}",
            "Deliver each file under its own name",
        )
    first = min([*others, place])
    if place in others or place > first:
        why = order.waits_for(place, first)
        if why:
            raise ConfigError(f"{path} waits for {why}", "Do that first")
    last = max([*others, place])
    file.info["is_followed"] = place < last and ordered.ends_with_next(source)
    return (order.ends.get(place - 1) if place > first else None), place, last


def _place(source: Source, row: dict) -> int | None:
    """The place of a landed file, where its codec has opened it."""
    context = json.loads(row["context"] or "{}")
    is_placed = ordered.is_ordered(source) and framing.is_opened(context)
    return CODECS[source.codec].place(context) if is_placed else None


def _planned(project: Project, file: ordered.Listed, before: dict | None) -> dict:
    """The row of bronze.files of a file that is read from its first byte."""
    follows = {"before": before} if before else {}
    try:
        row = apart(lambda: TRANSPORTS[file.source.transport].plan_file(project, *file, **follows), file.path)
    except Died as death:
        _not_better(file.path, str(death))
    except OSError as error:
        raise ConfigError(f"{file.path} cannot be opened: {error}", "See that Inlet may read it") from error
    if not isinstance(row, dict):
        raise ConfigError(
            f"{file.path} waits for {row or 'its writer, which still writes it'}", "Try again once it is whole"
        )
    problem = row["problem"] and json.loads(row["problem"]) or json.loads(row["start_context"] or "{}").get("problem")
    if problem:
        _not_better(file.path, f"expected {problem['expected']}, found {problem['found']}")
    if not row["num_units"]:
        _not_better(file.path, "it holds no whole record")
    return row


def _not_better(path: str, why: str) -> NoReturn:
    raise ConfigError(f"{path} cannot be read as it is now: {why}", AGAIN)


def _start(row: dict) -> dict:
    """What was known at the first byte, but for what waits for a verdict."""
    return {name: v for name, v in json.loads(row["start_context"] or "{}").items() if name != UNDECIDED}


def _known_at_end(row: dict) -> dict:
    return {name: v for name, v in json.loads(row["context"] or "{}").items() if name != UNDECIDED}


def _check_agreement(project: Project, file: ordered.Listed, row: dict, rows: list[Reading], began: int) -> int:
    """How far the records reach that were landed of a file, but for a rest that was rejected. In: its new row of
    bronze.files; those of its source so far, by batch; the batch that read it last from its first byte. Raises:
    ConfigError where a change that was read before would stand though the file does not hold it.
    """
    source, path = file.source, file.path
    own = [r for r in rows if r["path"] == path and r["batch_id"] >= began and not r["problem"]]
    old, new, words = _lengths(project, file, row, own)
    given = {"verdicts": None} | row
    try:
        if source.brings_messages:
            why = agreement.of_messages(project, given)
        else:
            why = agreement.of_blocks(project, given, began, _not_standing(source, path, rows))
    except Died as death:
        _not_better(path, str(death))
    if why := why or agreement.at_end(source, own[-1], row):
        raise ConfigError(why, STAYS)
    if new < old:
        raise ConfigError(
            f"{path} is shorter than what was landed of it: {new:,} {words}, {old:,} were read as records",
            f"If it is not whole yet, deliver it whole, then `inlet replay --file` again. {STAYS}",
        )
    return old


def _not_standing(source: Source, path: str, rows: list[Reading]) -> list[tuple[int, int]]:
    """Ranges of a file of which silver holds no change: those that were abandoned, or wait for a verdict."""
    abandoned = [one[:3] for one in rejudged.verdicts(rows) if one[5] == ABANDONED]
    waiting = [one[:3] for one in ordered.undecided(source, rows)]
    return [(start, end) for of, start, end in [*abandoned, *waiting] if of == path]


def _lengths(project: Project, file: ordered.Listed, row: dict, own: list[Reading]) -> tuple[int, int, str]:
    """How far the records reach that were landed of a file, but for a rest that was rejected; how far those that are
    there now; in what. In: its new row of bronze.files; those since it was read from its first byte. Raises:
    ConfigError where its end may still go on.
    """
    source, path, size_now = file.source, file.path, file.info["size"]
    words, new = "bytes", row["ofs_end"]
    if source.brings_messages and source.transport in ("parquet", "avro"):
        words, new, old = "messages", row["num_units"], sum(r["num_units"] for r in own)
    elif source.transport == "whole_file":
        return 0, 0, words  # one message, which another one replaces
    elif source.brings_messages:
        if is_compressed(path):
            return 0, 0, words  # what its messages say is told apart by their places in the order
        old = own[-1]["ofs_end"]
    else:
        has_rows = source.transport in ROW_TRANSPORTS
        words, size = ("rows", "num_records") if has_rows else ("bytes", "size_bytes")
        old = max(
            (
                block["file_offset"] + block[size]
                for block in lake.peek(
                    project.lakehouse_path(),
                    "bronze.blocks",
                    ["file_offset", size, "case when context like '%\"problem\"%' then context end as context"],
                    f"where source = {plain_literal(source.name)} and path = {plain_literal(path)} "
                    f"and batch_id >= {own[0]['batch_id']}",
                )
                if "problem" not in json.loads(block["context"] or "{}")
            ),
            default=0,
        )
        new = _num_rows(project, path) if has_rows else _num_bytes(project, path) if is_compressed(path) else new
    if new < old <= size_now and words == "bytes" and not file.has_settled:
        raise ConfigError(
            f"The last {size_now - new:,} bytes of {path} may still go on: it has not rested for settle_minutes "
            f"({source.settle_minutes:g})",
            "Try again once it has; a copy that keeps the file's time (cp -p) need not wait",
        )
    return old, new, words


def _num_rows(project: Project, path: str) -> int:
    import pyarrow.parquet as pq

    with (unpacked if is_compressed(path) else open_file)(project, path) as stream:
        return pq.ParquetFile(stream).metadata.num_rows


def _num_bytes(project: Project, path: str) -> int:
    with unpacked(project, path) as stream:
        return stream.seek(0, 2)
