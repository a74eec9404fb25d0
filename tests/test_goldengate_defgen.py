"""Column lists of GoldenGate: each case of tests/cases/goldengate_defgen/ is what to expect, as YAML, and a file behind
`---`.
"""

from pathlib import Path

import pytest
import yaml

from inlet import config
from inlet.codecs.goldengate import source_type
from inlet.codecs.goldengate.defgen import definitions_of
from inlet.commands import import_contracts as importing
from inlet.errors import ConfigError
from inlet.source import Source
from inlet.table_column import DECIMAL, SIMPLE_TYPES
from tests import projects

CASES = sorted((Path(__file__).parent / "cases" / "goldengate_defgen").glob("*.txt"))
SOURCE = {"codec": "goldengate_trail", "from": "landing/gg/*"}


def case(path: Path) -> tuple[dict, bytes, Source]:
    top, text = path.read_text(encoding="utf-8").split("\n---\n", 1)
    wanted = yaml.safe_load(top)
    options = {"charset": wanted["charset"]} if "charset" in wanted else {}
    source = Source(**SOURCE, name="gg", options=options, tables=wanted.get("tables", {}))
    return wanted, text.encode(wanted.get("encoding", "utf-8")), source


def shown(column: dict) -> str:
    words = [column["name"], column["type"], "" if column["nullable"] else "not null", column["source_type"]]
    return " ".join(filter(None, [*words, f"in {column['charset']}" if "charset" in column else ""]))


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_file_gives_these_columns_or_says_what_is_wrong_in_which_line(path, line_end):
    wanted, data, source = case(path)
    data = data.replace(b"\n", line_end)
    if "error" in wanted:
        with pytest.raises(ConfigError) as error:
            definitions_of(data, "gg.def", source)
        assert str(error.value).startswith("gg.def, line ") and wanted["error"] in str(error.value)
        return
    found = {
        f"{d.source_schema}.{d.source_table}": {"key": d.key, "columns": [shown(c) for c in d.columns]}
        for d in definitions_of(data, "gg.def", source)
    }
    assert found == wanted["expected"]
