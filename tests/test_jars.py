"""What a start of Spark is spared: jars that are resolved once, and an archive of classes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from inlet.errors import EnvironmentLacks
from inlet.lake import beside as folders
from inlet.lake import jars, maven, scala_classes


@pytest.fixture
def beside(tmp_path, monkeypatch):
    monkeypatch.setattr(jars.sys, "prefix", str(tmp_path))
    jars.paths().parent.mkdir(parents=True)
    return tmp_path


def test_jars_that_are_not_resolved_or_are_gone_are_asked_for_by_their_coordinates(beside):
    assert jars.settings(("a:b:1",)) == {"spark.jars.packages": f"{jars.DELTA},a:b:1"} and not jars.are_resolved()
    jars.paths().write_text(f"{beside}/delta.jar")
    assert jars.settings() == {"spark.jars.packages": jars.DELTA} and not jars.are_resolved()
    (beside / "delta.jar").touch()
    assert (
        jars.settings(("a:b:1",))
        == {"spark.driver.extraClassPath": f"{beside}/delta.jar", "spark.jars.packages": "a:b:1"}
        and jars.are_resolved()
    )


@pytest.mark.parametrize("master", ["spark://far:7077", "local-cluster[2,1,1024]"])
def test_workers_elsewhere_are_sent_the_jars(beside, monkeypatch, master):
    monkeypatch.setenv("INLET_MASTER", master)
    jars.paths().write_text(str(jars.paths()))
    jars.archive().touch()
    assert jars.settings() == {"spark.jars": str(jars.paths())} and jars.java_options() == ""


def test_an_archive_is_used_where_it_and_its_jars_are_there(beside):
    jars.archive().touch()
    assert jars.java_options() == ""
    jars.paths().write_text(str(jars.archive()))
    assert str(jars.archive()) in jars.java_options()


@pytest.mark.skipif(
    not jars.archive().exists() or not Path("/proc/self/maps").exists(),
    reason="no archive (python -m inlet.lake.archive), or not Linux",
)
def test_a_session_takes_its_classes_from_the_archive(spark):
    assert str(jars.archive()) in Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()


def test_an_environment_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "share").write_text("in the way")
    monkeypatch.setattr(folders.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(scala_classes, "check_java", lambda: None)
    for make in (scala_classes.classes, lambda: maven.fetched("derby", ("org.apache.derby:derbynet:10.16.1.1",))):
        with pytest.raises(EnvironmentLacks, match="share/inlet cannot be written: Not a directory"):
            make()


def test_a_session_goes_on_where_its_jars_cannot_be_remembered(tmp_path, monkeypatch):
    (tmp_path / "share").write_text("in the way")
    monkeypatch.setattr(jars.sys, "prefix", str(tmp_path))
    settings = {"spark.jars.packages": jars.DELTA, "spark.jars": "file:/ivy/io.delta_delta-storage-4.4.0.jar"}
    jars.remember(SimpleNamespace(conf=settings))
    assert not jars.are_resolved()


def test_a_folder_beside_the_environment_is_there_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "share" / "jars"
    with pytest.raises(EnvironmentLacks), folders.made(folder):
        raise EnvironmentLacks("Maven Central does not answer")
    assert not list(folder.parent.iterdir())
    for content in ("first", "second"):  # which was slower, and does not replace what others use
        with folders.made(folder) as filling:
            (filling / "a.jar").write_text(content)
    assert [path.name for path in folder.parent.iterdir()] == ["jars"] and (folder / "a.jar").read_text() == "first"
