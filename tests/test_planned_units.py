"""A plan and the second reading of its files agree: on blocks, bytes and what is known before each, however a trail
comes."""

import json
import random

import pytest

from inlet import bronze
from inlet.bronze import blocks, framing
from tests import goldengate_streams as streams
from tests import projects
from tests.encode.goldengate_tokens import FIRST, LAST, MIDDLE, ONLY
from tests.encode.goldengate_trail import Trail
from tests.goldengate import contract_of
from tests.test_goldengate_trail import NOTES

SOURCE = {"codec": "goldengate_trail", "from": "landing/tr*"}


def random_trail(rng: random.Random) -> list[tuple[str, bytes]]:
    """Changes of one and of two records, segments with and without their next one, chunks, over files."""
    trail = Trail([NOTES], prefix="./dirdat/tr", has_header=rng.random() < 0.5)
    for n in range(2):
        trail.insert("HR.NOTES", {"ID": 100 + n})
    for n in range(rng.randint(4, 14)):
        place = rng.choice([FIRST, MIDDLE, LAST, ONLY])
        kind = rng.choice(["insert", "pair", "before", "segments", "segment", "chunk", "roll"])
        row = {"ID": n, "BODY": f"note {n}"}
        area = trail.image("HR.NOTES", row)
        if kind == "roll":
            trail.roll()
        elif kind == "insert":
            trail.insert("HR.NOTES", row, trans_ind=place)
        elif kind == "chunk":
            trail.lob_chunk("HR.NOTES", b"\1" * 30, trans_ind=place)
        elif kind == "pair":
            trail.update_in_two("HR.NOTES", row, row, trans_ind=place)
        elif kind == "before":
            trail.row(15, "HR.NOTES", area, before_after="B", trans_ind=place)
        else:
            trail.row(5, "HR.NOTES", area[:9], rec_count=1, continued=1, trans_ind=place)
            if kind == "segments":
                trail.row(5, "HR.NOTES", area[9:], rec_count=2, trans_ind=place)
    return trail.files


@pytest.mark.parametrize("seed", range(25))
def test_a_piece_is_read_again_as_it_was_planned(tmp_path, monkeypatch, seed):
    rng, planned, rows = random.Random(seed), [], []
    contract = contract_of(NOTES).model_dump(exclude_defaults=True)
    project = projects.make(tmp_path, {"trail": SOURCE}, [contract], str(tmp_path / "lakehouse"))
    sent = streams.random_trail(rng, 6, prefix="./dirdat/tr").trail.files if seed % 5 == 0 else random_trail(rng)
    (tmp_path / "landing").mkdir()

    def cut_file(*given, **named):
        for block, after in framing.cut_file(*given, **named):
            planned.append(block)
            yield block, after

    for name, data in sent:
        for end in sorted({*(rng.randint(0, len(data)) for _ in range(rng.randint(0, 3))), len(data)}):
            (tmp_path / "landing" / name).write_bytes(data[:end])
            with monkeypatch.context() as watched:
                watched.setattr(blocks, "cut_file", cut_file)
                watched.setattr(
                    "inlet.bronze.file_rows.apart", lambda call, *paths: call()
                )  # in this process, to be seen
                files = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, rows)).files
            rows += [row | {"landed_at": None} for row in files]
            units = [unit for row in files if not row["problem"] for unit in blocks.units_of(project, row)]
            told = [(unit["file_offset"], unit["bytes"], json.loads(unit["context"])) for unit in units]
            assert told == [(block.file_offset, block.data, json.loads(json.dumps(block.context))) for block in planned]
            planned.clear()
    assert any(row["num_units"] for row in rows)
