"""SQL statements in a text, cut as Spark's own parser would read it.

A `;` in quotes or in a comment ends nothing. Strings stand in ' or " and have escapes with a backslash, but for r'...';
names stand in `; comments in /* */ nest.

>>> split("select ';' -- a; b\\n; select 2")
(["select ';' -- a; b"], 'select 2')
"""

import re

TOKEN = re.compile(
    r"""
    (?P<open>/\*)
    | --(?:\\\n|[^\n])*
    | (?<![\w])[rR](?:'[^']*'|"[^"]*")
    | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `[^`]*`
    | (?P<broken>['"`])
    | (?P<end>;)
    """,
    re.X | re.S,
)
COMMENT_EDGE = re.compile(r"/\*|\*/")
ONLY_COMMENTS = re.compile(r"(?:\s|--(?:\\\n|[^\n])*|/\*.*?\*/)*", re.S)


def split(text: str) -> tuple[list[str], str]:
    """Out: the statements that `;` ends, without it, and the text behind the last one. Empty ones are left out."""
    statements, start, at = [], 0, 0
    while token := TOKEN.search(text, at):
        at = token.end()
        if token["open"]:
            at = _end_of_comment(text, at)
        elif token["broken"]:
            break  # a quote that nothing closes yet
        elif token["end"]:
            statements.append(text[start : token.start()].strip())
            start = at
    rest = text[start:].strip()
    return list(filter(_says_something, statements)), rest if _says_something(rest) else ""


def is_whole(text: str) -> bool:
    """Does the text end with a statement that `;` ends?"""
    statements, rest = split(text)
    return bool(statements) and not rest


def _end_of_comment(text: str, at: int) -> int:
    depth = 1
    while depth and (edge := COMMENT_EDGE.search(text, at)):
        depth += 1 if edge[0] == "/*" else -1
        at = edge.end()
    return len(text) if depth else at


def _says_something(statement: str) -> bool:
    return ONLY_COMMENTS.fullmatch(statement) is None
