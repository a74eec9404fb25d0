"""`inlet.connect`: a notebook's session on a lakehouse."""

import subprocess
import sys

import pytest

from tests import projects

NOTEBOOK = """
import sys
import inlet
from inlet.errors import ConfigError

here, elsewhere = sys.argv[1:]
spark = inlet.connect(here, database="silver")
print(spark.sql("select count(*) as num from changes").collect()[0].num)
assert inlet.connect(here, database="bronze") is spark
for project, database in ((here, "nowhere"), (elsewhere, "silver"), (here + "/nowhere", "silver")):
    try:
        inlet.connect(project, database=database)
    except ConfigError as error:
        print(error)
"""


@pytest.mark.spark
def test_a_session_is_of_one_lakehouse_and_says_what_there_is_not(tmp_path):
    here, elsewhere = (projects.make(tmp_path / name).root for name in ("here", "elsewhere"))
    command = [sys.executable, "-c", NOTEBOOK, str(here), str(elsewhere)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    num, no_database, other, no_project = done.stdout.splitlines()
    assert num == "0" and "nowhere" in no_database and "silver" in no_database
    assert str(here) in other and "a process (a notebook) of its own" in other
    assert "nowhere" in no_project
    assert not (here / "lakehouse" / "_catalog_server").exists()  # it ended with its last user
