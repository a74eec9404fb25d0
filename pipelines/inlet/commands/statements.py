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
BLANK = re.compile(r"\s+|--(?:\\\n|[^\n])*|(?P<open>/\*)", re.S)


def split(text: str) -> tuple[list[str], str]:
    """Out: the statements that `;` ends, without it, and the text behind the last one. Empty ones are left out."""
    statements, start, at = [], 0, 0
    while token := TOKEN.search(text, at):
        at = token.end()
        if token["open"]:
            at = _end_of_comment(text, at) or len(text)
        elif token["broken"]:
            break  # a quote that nothing closes yet
        elif token["end"]:
            statements.append(text[start : token.start()].strip())
            start = at
    rest = text[start:].strip()
    return list(filter(body, statements)), rest if body(rest) else ""


def is_whole(text: str) -> bool:
    """Does the text end with a statement that `;` ends?"""
    statements, rest = split(text)
    return bool(statements) and not rest


def body(statement: str) -> str:
    """A statement without the comments that it begins with.

    >>> body("/* a /* b */ c */ -- d\\n select 1 -- e"), body("/* a /* b */ c")
    ('select 1 -- e', '/* a /* b */ c')
    """
    at = 0
    while blank := BLANK.match(statement, at):
        end = _end_of_comment(statement, blank.end()) if blank["open"] else blank.end()
        if not end:
            break
        at = end
    return statement[at:]


def _end_of_comment(text: str, at: int) -> int | None:
    """In: where its text begins. Out: what is behind it; None where nothing closes it."""
    depth = 1
    while depth and (edge := COMMENT_EDGE.search(text, at)):
        depth += 1 if edge[0] == "/*" else -1
        at = edge.end()
    return None if depth else at
