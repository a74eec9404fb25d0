"""Writes the extended area of JEF (41A1-7FFE, 拡張漢字 and 拡張非漢字) as a site table, for the option `gaiji`.

    python -m infra.local.jef_table pipelines/jef_extended.txt

Its cells are those of jef4j, a charset library for Java (net.arnx:jef4j on Maven Central, Apache License 2.0), which is
asked about each pair of bytes; the jar is fetched once. Its author has drawn them by eye from the vendor's dictionary
of 1987: take them as the best there is, and keep bronze. A cell that the library reads as no character, or as several
code points (a kana with its sound mark, a variant by its selector), is left out, so that a record that holds it is
rejected. The file's first lines name library, version and license, which go with it wherever you send it. `--charset`
and `--version` name another charset of the library, or of Java, and another version.
"""

import argparse
import subprocess
from pathlib import Path

from inlet.lake import maven
from inlet.lake.java import java

LIBRARY, VERSION = "net.arnx:jef4j", "0.12.1"
PROGRAM = Path(__file__).with_name("JefTable.java")
EXTENDED = 0x41A1, 0x7FFE
HEAD = """\
# JEF's extended area, code and code point, by {charset} of {library}:{version}.
# {library} is licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0
"""


def pairs(charset: str, jars: list[Path]) -> dict[int, int]:
    """Pair of bytes -> the one code point that Java's charset of that name reads it as."""
    command = [java(), "-cp", ":".join(map(str, jars)), str(PROGRAM), charset]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {int(code, 16): int(point, 16) for code, point in map(str.split, lines)}


def table(cells: dict[int, int]) -> str:
    """The lines of the extended area."""
    first, last = EXTENDED
    return "".join(f"{code:04X} U+{point:04X}\n" for code, point in sorted(cells.items()) if first <= code <= last)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--charset", default="x-Fujitsu-JEF")
    parser.add_argument("--version", default=VERSION)
    said = parser.parse_args()
    jars = maven.fetched("jef4j", (f"{LIBRARY}:{said.version}",), with_others=False)
    text = table(pairs(said.charset, jars))
    head = HEAD.format(charset=said.charset, library=LIBRARY, version=said.version)
    said.file.write_text(head + text, encoding="utf-8")
    print(f"{len(text.splitlines())} cells written to {said.file}")


if __name__ == "__main__":
    main()
