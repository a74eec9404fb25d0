"""`make notebooks`: executes the walk-throughs in notebooks/ and writes docs/notebooks/, what the repository shows.

    python -m infra.local.notebooks [--project DIR] [--out DIR] [NAME ...]

A notebook is a Python script in cells (`# %%`), without outputs; Jupyter (with jupytext) and VS Code open it. Its page
is Markdown: the text, the code (that of a cell with the tag `plot` folded), tables, and its pictures as PNG files
beside it. The demo's data has a fixed seed and no page shows a clock, so a page changes only when its notebook or
Inlet does.
"""

import argparse
import base64
import os
import re
import sys
from pathlib import Path

import jupytext
import nbclient
import nbformat
from jupyter_client.manager import AsyncKernelManager
from traitlets import Float

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS, PAGES = ROOT / "notebooks", ROOT / "docs" / "notebooks"
NAMES = ("analyst", "engineer", "auditor")
CELL_SECONDS = 300  # what a cell may take
END_SECONDS = 30  # what a kernel may take to end: it stops Spark and the catalog's server
QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"  # a JVM that lives for a minute compiles quickly


class Kernel(AsyncKernelManager):
    """A kernel that has the time to end by itself."""

    shutdown_wait_time = Float(END_SECONDS)


def execute(name: str, project: Path) -> nbformat.NotebookNode:
    """Execute a notebook in a kernel of its own. In: its name; the project that it looks at. Out: with its outputs.

    Raises: nbclient.exceptions.CellExecutionError, which shows the cell that failed.
    """
    notebook = jupytext.read(NOTEBOOKS / f"{name}.py")
    client = nbclient.NotebookClient(
        notebook,
        kernel_manager_class=Kernel,
        extra_arguments=["--log-level=ERROR"],
        timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]  # `inlet` of this environment
    modules = [str(ROOT / "pipelines"), os.environ.get("PYTHONPATH", "")]
    environment = (
        {"JDK_JAVA_OPTIONS": QUICK}
        | os.environ
        | {
            "INLET_PROJECT": str(project),
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": os.pathsep.join(filter(None, modules)),
        }
    )
    client.execute(env=environment)
    return notebook


def page(name: str, notebook: nbformat.NotebookNode) -> tuple[str, dict[str, bytes]]:
    """A notebook with outputs as Markdown. Out: the text, and the pictures by their names."""
    parts, pictures, heading = [], {}, name
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            heading = (re.findall(r"^#+ (.+)$", cell.source, re.M) or [heading])[-1]
            continue
        code = f"```python\n{cell.source}\n```"
        if "plot" in cell.metadata.get("tags", ()):
            code = f"<details><summary>How this is drawn</summary>\n\n{code}\n\n</details>"
        shown = []
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}_{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                shown.append(f"![{heading}]({picture})")
            elif text := data.get("text/markdown"):
                shown.append(text)
            elif output.output_type == "execute_result" and "plot" in cell.metadata.get("tags", ()):
                continue  # what the last line of a plot happens to return
            elif text := output.get("text") or data.get("text/plain"):
                shown.append(f"```text\n{text.rstrip()}\n```")
        folded = code.startswith("<details>")
        parts += [*shown, code] if folded else [code, *shown]
    title, _, rest = "\n\n".join(parts).partition("\n")
    note = (
        f"*[notebooks/{name}.py](../../notebooks/{name}.py), executed on the demo's lakehouse by `make notebooks`; "
        "do not edit this page.*"
    )
    return f"{title}\n\n{note}\n{rest}\n", pictures


def write(name: str, notebook: nbformat.NotebookNode, folder: Path) -> int:
    """Write a page and its pictures, in place of those of before. Out: bytes written."""
    folder.mkdir(parents=True, exist_ok=True)
    text, pictures = page(name, notebook)
    for old in folder.glob(f"{name}_*.png"):
        old.unlink()
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    for picture, data in pictures.items():
        (folder / picture).write_bytes(data)
    return len(text.encode()) + sum(map(len, pictures.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--project", type=Path, default=ROOT, help="the demo's project folder")
    parser.add_argument("--out", type=Path, default=PAGES, help="where the pages go")
    given = parser.parse_args()
    if not (given.project / "lakehouse" / "gold").is_dir():
        sys.exit(f"{given.project} has no lakehouse yet. Run `make demo` first.")
    for name in given.names:
        size = write(name, execute(name, given.project.resolve()), given.out)
        print(f"{given.out / name}.md, {size / 1000:,.0f} kB with its pictures")


if __name__ == "__main__":
    main()
