"""dbt's macros without dbt: each callable from Python with what it is given, so that one can be tested alone."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

from jinja2 import Environment, StrictUndefined

MACROS = Path(__file__).resolve().parents[2] / "dbt" / "macros"
MACRO = re.compile(r"\{%-? macro (\w+)\(.*?\{%-? endmacro -?%\}", re.DOTALL)


class _Returned(Exception):
    """dbt's `return`: the value of a macro that is no text."""


def load(**given) -> SimpleNamespace:
    """Every macro by its name. In: what dbt would give them, or macros in place of the project's own."""
    environment = Environment(extensions=["jinja2.ext.do"], undefined=StrictUndefined)

    def give_back(value):
        raise _Returned(value)

    def callable_(source: str, name: str):
        template = environment.from_string(source)

        def call(*args, **kwargs):
            try:
                return str(getattr(template.module, name)(*args, **kwargs))
            except _Returned as returned:
                return returned.args[0]

        return call

    environment.globals |= {"return": give_back, "tojson": json.dumps, "zip": zip, "none": None}
    found = {}
    for path in MACROS.rglob("*.sql"):
        for macro in MACRO.finditer(path.read_text()):
            found[macro[1]] = callable_(macro[0], macro[1])
    environment.globals |= found | given
    return SimpleNamespace(**found | given)
