"""A lakehouse that was copied or moved is not written to as if it were the other one, and becomes one of its own."""

import hashlib
import shutil
from pathlib import Path

import pytest

from inlet import lake
from inlet.errors import ConfigError, TryAgain
from inlet.lake import catalog, place, relocate
from tests.projects import item_records
from tests.test_bronze import deliver, extract
from tests.test_serve import inlet, published


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose six items are published, in schemas with a prefix."""
    return published(tmp_path_factory.mktemp("relocated"), {"location": "lakehouse", "prefix": "cdc_"})


def made(lakehouse: Path, named: str = "", where: str = "seg0") -> str:
    """A folder with what Derby's files show of its catalog; `named` is the lakehouse whose databases are in it."""
    folder = lakehouse / place.CATALOG / where
    folder.mkdir(parents=True)
    (folder / "c490.dat").write_bytes(b"\0\1\0\x20" + (f"file:{named}/bronze\0\6bronze".encode() if named else b""))
    return str(lakehouse)


@pytest.mark.parametrize("where", ["seg0", "log"])
def test_a_catalog_of_an_earlier_release_tells_its_place_by_its_databases(tmp_path, where):
    place.check(made(tmp_path / "a b", str(tmp_path / "a b"), where))
    place.check(made(tmp_path / "new", "", where))
    place.check(made(tmp_path / "public" / "gold-2", str(tmp_path / "public" / "gold-2"), where))
    with pytest.raises(ConfigError, match=r"was copied or moved: its catalog names the tables of /data/lakehouse\. "):
        place.check(made(tmp_path / "copy", "/data/lakehouse", where))


def test_a_folder_is_the_same_by_any_path_and_another_one_by_its_copy(tmp_path):
    here = made(tmp_path / "lakehouse", "/data/lakehouse")
    place.write(here)
    (tmp_path / "link").symlink_to(here)
    for same in (here, str(tmp_path / "link")):
        place.check(same)
    shutil.copytree(here, tmp_path / "copy")
    shutil.move(here, tmp_path / "moved")
    for other in ("copy", "moved"):
        with pytest.raises(ConfigError, match="was copied or moved"):
            place.check(str(tmp_path / other))
    shutil.move(tmp_path / "moved", here)
    place.check(here)
    place.check("s3://bucket/lakehouse")


def test_a_catalog_that_was_made_new_tells_its_place(tmp_path):
    here = made(tmp_path / "lakehouse")
    for before in ("/data/lakehouse", here):
        (tmp_path / "lakehouse" / place.FILE).write_text(f"{before}\n")
        place.remember(here)
        assert (tmp_path / "lakehouse" / place.FILE).read_text() == f"{here}\n"


def test_what_writes_and_what_opens_the_catalog_is_refused_without_java(tmp_path, monkeypatch):
    from inlet.lake.spark import session

    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    here = made(tmp_path / "copy", "/data/lakehouse")
    for begin in (lambda: lake.writing(here), lambda: catalog.shared(here)):
        with pytest.raises(ConfigError, match="inlet relocate"), begin():
            pass
    with pytest.raises(ConfigError, match="inlet relocate"):
        session(here)


def test_a_server_that_is_used_is_not_taken_away(tmp_path):
    here = made(tmp_path / "copy")
    (tmp_path / "copy" / catalog.FILE).write_text("{}")
    with (tmp_path / "copy" / catalog.FILE).open() as used:
        relocate.fcntl.flock(used, relocate.fcntl.LOCK_SH)
        with pytest.raises(TryAgain):
            relocate._drop_server(here)
    relocate._drop_server(here)
    assert not (tmp_path / "copy" / catalog.FILE).exists()


def files(folder: Path) -> dict[str, str]:
    tables = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0][0] != "_"]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in tables if path.name != "derby.log"}


def values(lakehouse: str) -> list[str]:
    """Every text in the catalog."""
    found = []
    with relocate._opened(lakehouse) as connection:

        def ask(sql: str) -> list[list[str]]:
            rows = connection.createStatement().executeQuery(sql)
            num, given = rows.getMetaData().getColumnCount(), []
            while rows.next():
                given.append([rows.getString(n + 1) or "" for n in range(num)])
            return given

        columns = ask(
            "select tablename, columnname, cast(columndatatype as varchar(100)) from sys.systables join sys.syscolumns "
            "on referenceid = tableid where tabletype = 'T'"
        )
        for table, column, type_ in columns:
            if type_.startswith(("VARCHAR", "CHAR", "CLOB", "LONG VARCHAR")):
                found += [text for [text] in ask(f'select "{column}" from "{table}"')]
    return found


@pytest.mark.spark
def test_a_copied_project_becomes_one_of_its_own_and_its_original_stays(project, tmp_path):
    assert inlet("pin", "month_end", "--project", project.root).returncode == 0
    original = Path(project.lakehouse_path())
    assert (original / place.FILE).read_text() == f"{original}\n"
    root = tmp_path / "a copy of it"
    shutil.copytree(project.root, root)
    (root / "lakehouse" / catalog.FILE).write_text("{}")  # as of a copy while it was shared
    before = files(original)
    for words in (("run",), ("sql", "select 1"), ("verify",)):
        done = inlet(*words, "--project", root)
        assert (done.returncode, "inlet relocate" in done.stderr) == (2, True), done.stderr
    done = inlet("relocate", "--project", root)
    assert done.returncode == 0 and f"named the tables of {original}, and" in done.stdout, done.stderr
    again = inlet("relocate", "--project", root)
    assert again.returncode == 0 and "its own tables already" in again.stdout, again.stderr
    texts = values(str(root / "lakehouse"))
    assert [text for text in texts if str(original) in text] == []
    assert any(text == f"file:{root}/lakehouse/gold/items__current" for text in texts)

    copy = type(project)(**dict(project) | {"root": root})
    deliver(copy, extract(item_records(7, 4)), "second_20260101000000_000002.lxg")
    done = inlet("run", "--project", root)
    assert done.returncode == 0, done.stderr
    done = inlet(
        "sql", "select (select count(*) from items), (select count(*) from month_end.items)", "--project", root
    )
    assert "10" in done.stdout and "6" in done.stdout, done.stdout + done.stderr
    assert files(original) == before
