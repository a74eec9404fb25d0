"""One Spark session for all tests of a process that need one; tests without the `spark` fixture run without Java in seconds."""

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["TZ"] = "Asia/Tokyo"                # nothing may depend on the machine's zone
time.tzset()
os.environ.pop("INLET_CATALOG", None)          # tests open catalogs of their own


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("proof") and not {"INLET_PROOF", "INLET_SOAK"} & os.environ.keys():
            item.add_marker(pytest.mark.skip(reason="takes minutes: make proof"))
        if "spark" in item.fixturenames:
            item.add_marker("spark")


@pytest.fixture(scope="session")
def lakehouse(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("lakehouse"))


@pytest.fixture(scope="session")
def spark(lakehouse):
    from inlet.spark import pace, session

    made = session(lakehouse, app="inlet-tests")
    with pace(made, is_small=True):
        yield made
