"""What differs between an embedded Spark, a cluster and Spark Connect, as far as no Spark is needed to see it."""

import pytest

from inlet.errors import ConfigError, InletError, TryAgain
from inlet.lake import connect, spark_errors
from inlet.publish import point
from tests import lakes, projects


@pytest.mark.parametrize(
    ("remote", "error", "message"),
    [
        ("sc://127.0.0.1:1", TryAgain, "The Spark Connect server at sc://127.0.0.1:1 does not answer"),
        (
            "sc://me:pw@127.0.0.1:1/;token=secret",
            TryAgain,
            "The Spark Connect server at sc://127.0.0.1:1 does not answer",
        ),
        ("sc://127.0.0.1:1/;token=secret==", ConfigError, "SPARK_REMOTE is no address of a Connect server"),
        ("sc://127.0.0.1:1/token=secret", ConfigError, "SPARK_REMOTE is no address of a Connect server"),
        ("spark://127.0.0.1:1", ConfigError, "SPARK_REMOTE is no address of a Connect server"),
    ],
)
def test_an_address_without_a_server_is_an_error_that_names_no_token(monkeypatch, remote, error, message):
    monkeypatch.setenv("SPARK_REMOTE", remote)
    with pytest.raises(error) as raised:
        connect.check_server()
    assert message in str(raised.value) and "secret" not in str(raised.value) and "pw" not in str(raised.value)


@pytest.mark.parametrize(
    ("variables", "text", "kind"),
    [
        ({}, "A column with name `SESSION_CLOSED` cannot be resolved", None),
        ({}, "[INVALID_HANDLE.SESSION_NOT_FOUND] of a value", None),
        ({"SPARK_REMOTE": "sc://h"}, "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle is invalid", TryAgain),
        ({"SPARK_REMOTE": "sc://h"}, "status = StatusCode.UNAVAILABLE", TryAgain),
        (
            {"INLET_MASTER": "spark://h:1"},
            "ExecutorLostFailure (executor 1 exited unrelated to the running tasks)",
            TryAgain,
        ),
        ({"INLET_MASTER": "spark://h:1"}, "ExecutorLostFailure (executor 1 exited caused by one of the tasks)", None),
    ],
)
def test_only_what_the_kind_of_spark_can_say_is_taken_for_its_end(monkeypatch, variables, text, kind):
    for name in ("SPARK_REMOTE", "INLET_MASTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    worded = spark_errors.worded(InletError(f"gold: items__current: {text}"))
    assert (worded and type(worded)) == kind


def test_what_a_killed_client_has_begun_is_interrupted_and_refused_before_the_next_session_takes_its_place(
    tmp_path, monkeypatch
):
    path, done = tmp_path / "_session", []
    monkeypatch.setattr(connect, "_interrupt_former", done.append)

    def is_killed():
        raise KeyboardInterrupt

    path.write_text("former")
    with pytest.raises(KeyboardInterrupt):
        connect.hold("next", path, is_killed)
    end = connect.hold("next", path, lambda: done.append(path.read_text()))
    assert (done, path.read_text()) == (["former"] * 3, "next")
    end()
    connect.hold("another", path, is_killed)


def test_a_lakehouse_goes_on_through_connect_from_the_point_of_its_own_catalog(tmp_path):
    project = projects.make(tmp_path)
    row = lakes.point(3, lakes.BEGAN, depot=lakes.seq(5))
    lakes.write(project, "gold.published", row | {"versions": {"items__current": 7, "silver.transactions": 2}})
    newest = point.logged(project)
    assert (newest.number, newest.points, newest.versions) == (
        3,
        {"depot": lakes.seq(5)},
        {"items__current": 7, "silver.transactions": 2},
    )
