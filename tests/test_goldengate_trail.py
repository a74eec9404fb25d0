"""Trails: what an independent encoder writes is what the codec reads, whatever the trail's form and however it
comes."""

import random

import pytest

from tests import goldengate_streams as streams
from tests.goldengate import contract_of, decoded_image, random_deliveries, read_files, source_of


@pytest.mark.parametrize("seed", range(40))
def test_a_random_trail_is_read_as_it_was_written(seed):
    rng = random.Random(seed)
    sent = streams.random_trail(rng)
    tables = {name: contract_of(table) for name, table in sent.trail.tables.items()}
    found = read_files(sent.trail.files, source_of(), tables, random_deliveries(rng) if seed % 2 else None)
    assert [str(reject) for reject in found["rejects"]] == []
    expected = [
        {
            "source_table": change["table"].split(".")[1],
            "operation": change["operation"],
            "before": decoded_image(sent.trail.tables[change["table"]], change["before"]),
            "after": decoded_image(sent.trail.tables[change["table"]], change["after"]),
            "transaction_id": change["transaction_id"],
            "transaction_event_counter": change["counter"],
            "transaction_last_event": change["last"],
            "change_timestamp": change["io_time"],
            "stream_position": f"{change['seqno']}/{change['rba']}",
            "csn": change["csn"],
        }
        for change in sent.changes
    ]
    changes = sorted(found["changes"], key=lambda row: row["change_seq"])
    assert expected == [{name: (row | {"csn": row["header"]["csn"]})[name] for name in expected[0]} for row in changes]
    abandoned = {(record.seqno, record.rba) for record in sent.abandoned}
    assert all(any(s == seqno and a <= rba < b for s, a, b in found["abandoned"]) for seqno, rba in abandoned)
    assert not found["undecided"]
