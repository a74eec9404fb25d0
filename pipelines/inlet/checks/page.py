"""Pages of checks: Great Expectations' page of each validation and an index, readable without a network."""

import functools
import html
import re

import fsspec

NO_ROWS = "no rows to check"
NUM_INDEX = 1_000  # older lines leave the index; their pages and results stay
FROM_NETWORK = (
    r"(?s)url\(.?https?:[^)]*\)|<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<footer.*?</footer>"
    r"|<a\b[^>]*newsletter.*?</a>"
)
STYLE = (
    "body{font:14px sans-serif;margin:2em;max-width:80em}table{border-collapse:collapse}td,th{border:1px solid #ccc;"
    "padding:.3em .6em;text-align:left;vertical-align:top}.failed{color:#b00}.warned{color:#a60}.held{color:#070}"
)


def of_validation(validated) -> str:
    """Great Expectations' page of one validation, without what it would load from the network."""
    from great_expectations.render.renderer import ValidationResultsPageRenderer

    page = _view().render(ValidationResultsPageRenderer(run_info_at_end=True).render(validated))
    page = re.sub(FROM_NETWORK, "", page)
    return page.replace("</head>", f"<style>{STYLE}</style></head>", 1)


@functools.cache
def _view():
    """What makes pages; it compiles its templates once, which takes longer than a page."""
    from great_expectations.render.view import DefaultJinjaPageView

    return DefaultJinjaPageView()


def write(docs: str, checked: dict[str, tuple]) -> str:
    """Write the pages of one run and its lines of the index. In: folder or URL; table -> (its results, its page or
    None). Out: path of the index."""
    for table, (results, page) in checked.items():
        if page:
            _write(f"{docs}/{results[0].run_id}/{table}.html", page)
    lines = [_line(results, bool(page)) for results, page in checked.values()]
    _write(f"{docs}/index.html", _index(lines + _lines(f"{docs}/index.html")[:NUM_INDEX]))
    return f"{docs}/index.html"


def _line(results: list, has_page: bool) -> str:
    """One table of one run in the index."""
    first, name = results[0], html.escape(results[0].table)
    failed = sum(not r.success and r.severity == "error" for r in results)
    warned = sum(not r.success and r.severity == "warn" for r in results)
    state = "failed" if failed else "warned" if warned else "held"
    link = f"<a href='{first.run_id}/{name}.html'>{name}</a>" if has_page else name
    batches = ", ".join(map(str, first.batch_ids or ["all"]))
    outcome = f"<b class={state}>{state}</b>" + (f" ({NO_ROWS})" if first.observed == NO_ROWS else "")
    cells = [f"{first.checked_at:%Y-%m-%d %H:%M:%S}", first.step, batches, link, outcome, len(results), failed, warned]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _index(lines: list[str]) -> str:
    """The list of what was checked, newest first. It is its own memory: a query over all results would grow with
    them.
    """
    names = ("at (UTC)", "step", "batches", "table", "result", "expectations", "failed", "warned")
    heads = "".join(f"<th>{name}</th>" for name in names)
    return (
        "<!doctype html><meta "
        f"charset=utf-8><title>Checks</title><style>{STYLE}</style><h1>Checks</h1>\n<p>Newest first. "
        f"All of them: <code>select * from checks.results</code></p>\n<table>\n<tr>{heads}</tr>\n"
        + "\n".join(lines)
        + "\n</table>\n"
    )


def _lines(index: str) -> list[str]:
    files, path = fsspec.core.url_to_fs(index)
    if not files.exists(path):
        return []
    return [line for line in files.cat_file(path).decode().splitlines() if line.startswith("<tr><td>")]


def _write(path: str, text: str) -> None:
    files, path = fsspec.core.url_to_fs(path)
    files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    files.pipe_file(path, text.encode())
