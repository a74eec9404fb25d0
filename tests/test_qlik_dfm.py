"""What a sidecar of Qlik says, and what no sidecar says."""

import pytest
from inlet.fields import json_exact
from inlet.fields.wrong import Wrong


@pytest.mark.parametrize(
    "before, kind", [(b'"a": 1, "a": 2', "invalid_json"), (b'"a": NaN', "invalid_json")], ids=["twice", "constant"]
)
def test_what_is_refused_before_a_nest_beyond_reading_is_a_reject(before, kind):
    deep = b"[" * 200_000 + b"]" * 200_000
    with pytest.raises(Wrong) as wrong:
        json_exact.parse(b'{"x": {' + before + b'}, "deep": ' + deep + b"}")
    assert wrong.value.kind == kind
