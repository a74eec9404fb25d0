"""The reference itself, example by example: each test is one sentence of section 5 of the design."""

import random
from dataclasses import replace

import pytest

from tests.reference import before_after, current, fold
from tests.streams import COLUMNS, KEY, Change, deliver, seq, stream

AB = ["K", "A", "B"]


def change(place, op, before=None, after=None, **more) -> Change:
    return Change("s", "T.T", seq(place), op, before, after, **more)


def rows(*changes):
    """key -> (values without the key, from, to, conflict), one per version, places instead of sequences."""
    versions, _ = fold(changes, ["K"], AB)
    return [
        (
            v.key[0],
            {n: x for n, x in v.values.items() if n != "K"},
            int(v.valid_from_seq[16:]),
            v.valid_to_seq and int(v.valid_to_seq[16:]),
            v.conflict,
        )
        for v in versions
    ]


INSERT = change(1, "INSERT", after={"K": 1, "A": 1, "B": 1})


def test_an_update_replaces_what_it_supplies_and_keeps_the_rest():
    assert rows(INSERT, change(2, "UPDATE", after={"K": 1, "A": None})) == [
        (1, {"A": 1, "B": 1}, 1, 2, None),
        (1, {"A": None, "B": 1}, 2, None, None),
    ]


def test_a_delete_closes_the_row_and_a_delete_of_nothing_is_counted():
    changes = INSERT, change(2, "DELETE", before={"K": 1}), change(3, "DELETE", before={"K": 1})
    assert rows(*changes) == [(1, {"A": 1, "B": 1}, 1, 2, None)]
    assert fold(changes, ["K"], AB)[1] == [(seq(3), "delete_without_row")]


def test_an_update_without_a_row_makes_an_incomplete_row_until_every_column_came():
    changes = change(1, "UPDATE", after={"K": 1, "A": 1}), change(2, "UPDATE", after={"K": 1, "B": 2})
    assert rows(*changes) == [(1, {"A": 1}, 1, 2, "update_without_row"), (1, {"A": 1, "B": 2}, 2, None, None)]
    assert [v.is_complete for v in fold(changes, ["K"], AB)[0]] == [False, True]


def test_an_upsert_of_a_row_is_an_update():
    changes = change(2, "UPDATE", after={"K": 1, "A": None}), change(3, "UPDATE", {"K": 1}, {"K": 2, "B": 5})
    assert rows(INSERT, *(replace(c, op="UPSERT") for c in changes)) == rows(INSERT, *changes)


def test_an_upsert_of_nothing_inserts_what_it_supplies():
    changes = change(1, "UPSERT", after={"K": 1, "A": 1}), change(2, "UPSERT", {"K": 7}, {"K": 8, "A": 1, "B": 2})
    versions, odd = fold(changes, ["K"], AB)
    assert [(v.values, v.is_complete) for v in versions] == [
        ({"K": 1, "A": 1}, False),
        ({"K": 8, "A": 1, "B": 2}, True),
    ]
    assert odd == []


def test_an_upsert_that_falls_on_a_row_of_another_key_replaces_it():
    assert rows(INSERT, change(2, "UPSERT", {"K": 7}, {"K": 1, "A": 5})) == [
        (1, {"A": 1, "B": 1}, 1, 2, None),
        (1, {"A": 5}, 2, None, "key_change_onto_row"),
    ]


def test_a_key_change_carries_what_it_does_not_supply():
    assert rows(INSERT, change(2, "UPDATE", {"K": 1}, {"K": 2, "A": 5})) == [
        (1, {"A": 1, "B": 1}, 1, 2, None),
        (2, {"A": 5, "B": 1}, 2, None, None),
    ]


def test_a_key_change_onto_a_row_replaces_it():
    other = change(2, "INSERT", after={"K": 2, "A": 9, "B": 9})
    assert rows(INSERT, other, change(3, "UPDATE", {"K": 1}, {"K": 2})) == [
        (1, {"A": 1, "B": 1}, 1, 3, None),
        (2, {"A": 9, "B": 9}, 2, 3, None),
        (2, {"A": 1, "B": 1}, 3, None, "key_change_onto_row"),
    ]


def test_a_key_change_of_nothing_is_an_update_without_a_row_even_onto_a_row():
    assert rows(INSERT, change(2, "UPDATE", {"K": 7}, {"K": 1, "A": 5})) == [
        (1, {"A": 1, "B": 1}, 1, 2, None),
        (1, {"A": 5}, 2, None, "update_without_row_onto_row"),
    ]


def moved(place, old, new, transaction_id="T"):
    return change(place, "UPDATE", {"K": old}, {"K": new}, transaction_id=transaction_id)


def live(*changes):
    return {key: values["A"] for key, values, _, end, _ in rows(*changes) if end is None}


def test_an_update_that_swaps_or_renumbers_keys_loses_no_row():
    three = [change(k, "INSERT", after={"K": k, "A": k, "B": 0}) for k in (1, 2, 3)]
    assert live(*three, moved(4, 1, 2), moved(5, 2, 1)) == {1: 2, 2: 1, 3: 3}
    assert live(*three, moved(4, 1, 2), moved(5, 2, 3), moved(6, 3, 4)) == {2: 1, 3: 2, 4: 3}
    assert live(*three, moved(4, 1, 2), moved(5, 2, 3), moved(6, 3, 1)) == {2: 1, 3: 2, 1: 3}
    assert [version[4] for version in rows(*three, moved(4, 1, 2), moved(5, 2, 1))] == [None] * 5


def test_the_rows_of_different_transactions_do_not_swap():
    two = [change(k, "INSERT", after={"K": k, "A": k, "B": 0}) for k in (1, 2)]
    assert live(*two, moved(4, 1, 2), moved(5, 2, 1, "U")) == {1: 1}
    assert live(*two, moved(4, 1, 2), change(5, "UPDATE", after={"K": 2, "A": 9}), moved(6, 2, 3)) == {3: 9}


def test_a_renumbering_told_as_deletes_and_inserts_loses_no_row():
    def put(place, k, a):
        return change(place, "INSERT", after={"K": k, "A": a, "B": 0}, transaction_id="T")

    def take(place, k, transaction_id="T"):
        return change(place, "DELETE", before={"K": k}, transaction_id=transaction_id)

    three = [change(k, "INSERT", after={"K": k, "A": k, "B": 0}) for k in (1, 2, 3)]
    assert live(*three, take(4, 1), put(5, 2, 1), take(6, 2), put(7, 3, 2), take(8, 3), put(9, 4, 3)) == {
        2: 1,
        3: 2,
        4: 3,
    }
    assert live(*three, put(4, 2, 9), take(5, 2, "U")) == {1: 1, 3: 3}
    assert live(*three, moved(4, 1, 2), take(5, 2)) == {2: 1, 3: 3}
    assert live(*three, put(4, 2, 9), moved(5, 2, 5)) == {1: 1, 2: 9, 3: 3, 5: 2}
    _, anomalies = fold([*three, put(4, 2, 9), take(5, 2), take(6, 2), take(7, 2)], ["K"], AB)
    assert anomalies == [(seq(7), "delete_without_row")]


def test_a_row_may_move_twice_within_a_transaction():
    assert live(INSERT, moved(2, 1, 2), moved(3, 2, 3)) == {3: 1}


def test_an_insert_over_a_row_is_flagged_and_a_refresh_over_a_row_is_not():
    again = {"K": 1, "A": 2, "B": 2}
    assert rows(INSERT, change(2, "INSERT", after=again))[1][4] == "insert_over_row"
    assert rows(INSERT, change(2, "REFRESH", after=again))[1][4] is None


@pytest.mark.parametrize("op", ["TRUNCATE", "EMPTY_LOAD"])
def test_a_wipe_closes_every_row(op):
    other = change(2, "INSERT", after={"K": 2, "A": 9, "B": 9})
    assert rows(INSERT, other, change(3, op)) == [(1, {"A": 1, "B": 1}, 1, 3, None), (2, {"A": 9, "B": 9}, 2, 3, None)]


def test_a_load_closes_at_its_start_what_it_does_not_send_and_changes_after_its_start_win():
    def row(key):
        return {"K": key, "A": 0, "B": 0}

    inserted = [change(n, "INSERT", after=row(n)) for n in (1, 2)]
    load = [change(10, "REFRESH", after=row(3), load_id="L"), change(12, "REFRESH", after=row(1), load_id="L")]
    others = change(11, "INSERT", after=row(4)), change(13, "LOAD_END", load_id="L")
    assert [(key, start, end) for key, _, start, end, _ in rows(*inserted, *load, *others)] == [
        (1, 1, 12),
        (1, 12, None),
        (2, 2, 10),
        (3, 10, None),
        (4, 11, None),
    ]


def test_a_load_that_has_not_ended_closes_nothing():
    load = change(10, "REFRESH", after={"K": 3, "A": 0, "B": 0}, load_id="L")
    assert [(key, end) for key, _, _, end, _ in rows(INSERT, load, change(13, "LOAD_END", load_id="M"))] == [
        (1, None),
        (3, None),
    ]


def test_missing_never_overwrites_a_value():
    missing = change(2, "UPDATE", after={"K": 1, "A": None}, states={"A": "missing"})
    versions = fold([INSERT, missing, change(3, "UPDATE", after={"K": 1, "A": 2})], ["K"], AB)[0]
    assert [(v.values["A"], v.unknown(AB), v.is_complete) for v in versions] == [
        (1, [], True),
        (1, ["A"], False),
        (2, [], True),
    ]


def test_a_column_that_was_dropped_and_is_added_again_is_null_until_it_is_supplied():
    """Version 2 has no A: its changes have null there. Version 3 has it again, from place 5 on."""
    others = [change(2, "INSERT", after={"K": k, "A": k, "B": 0}) for k in (2, 3)]
    dropped = change(4, "UPDATE", after={"K": 2, "A": None, "B": 1})
    again = change(6, "UPDATE", after={"K": 3, "B": 1}), change(7, "UPDATE", after={"K": 3, "A": 9})
    changes = [INSERT, replace(others[0], seq=seq(2)), replace(others[1], seq=seq(3)), dropped, *again]
    versions, odd = fold(changes, ["K"], AB, {seq(5): ["A"]})
    assert [(v.key[0], v.values["A"], int(v.valid_from_seq[16:])) for v in versions] == [
        (1, 1, 1),
        (1, None, 5),
        (2, 2, 2),
        (2, None, 4),
        (2, None, 5),
        (3, 3, 3),
        (3, None, 5),
        (3, None, 6),
        (3, 9, 7),
    ]
    assert all(v.is_complete for v in versions) and odd == []
    assert fold(changes[:4], ["K"], AB, {seq(5): ["A"]})[0] == fold(changes[:4], ["K"], AB)[0]  # not there yet


def test_a_change_at_the_place_where_a_column_is_added_again_opens_the_version_alone():
    versions, _ = fold([INSERT, change(5, "UPDATE", after={"K": 1, "B": 2})], ["K"], AB, {seq(5): ["A"]})
    assert [(v.values, v.valid_from_seq, v.valid_to_seq) for v in versions] == [
        ({"K": 1, "A": 1, "B": 1}, seq(1), seq(5)),
        ({"K": 1, "A": None, "B": 2}, seq(5), None),
    ]


def test_before_after_names_what_changed_and_what_was_not_supplied():
    row = before_after([change(1, "UPDATE", {"K": 1, "A": 1}, {"K": 2, "A": 1})], ["K"], AB)[0]
    assert (row["changed"], row["not_supplied"], row["key_changed"]) == (["K"], ["B"], True)


@pytest.mark.parametrize("number", range(200))
def test_the_result_depends_only_on_the_set_of_changes(number):
    rng = random.Random(number)
    changes = stream(rng)
    delivered = [c for batch in deliver(rng, changes, 4) for c in batch]
    expected = fold(changes, KEY, COLUMNS)
    assert fold(delivered, KEY, COLUMNS) == expected
    assert len({v.key for v in current(expected[0])}) == len(current(expected[0]))
    for one, two in zip(expected[0], expected[0][1:]):
        assert one.valid_from_seq < (one.valid_to_seq or "9")
        assert one.key != two.key or one.valid_to_seq <= two.valid_from_seq


def test_a_transaction_is_not_only_its_id():
    """Streams use five ids in turn; with an id for each transaction they mean the same."""
    for number in range(500):
        changes, numbered, transaction = stream(random.Random(f"ids {number}")), [], 0
        for one in changes:
            transaction += one.counter == 1
            numbered.append(replace(one, transaction_id=f"{transaction}") if one.transaction_id else one)
        assert fold(changes, KEY, COLUMNS) == fold(numbered, KEY, COLUMNS), number
