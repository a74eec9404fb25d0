"""What a field function raises: the kind of wrongness, the byte within the field, what was expected, what was found."""

LEN_SHOWN = 40


def quoted(value, most: int = LEN_SHOWN) -> str:
    """A value as a message quotes it: whole, or its beginning and three dots.

    >>> quoted("2026"), quoted("2026-01-05", 4)
    ("'2026'", "'2026'...")
    """
    text = value if isinstance(value, (str, bytes)) else str(value)
    return repr(text[:most]) + ("..." if len(text) > most else "")


def cut(text: str, most: int) -> str:
    """A text as a message has it: whole, or its beginning and three dots.

    >>> cut("ID, NAME", 8), cut("ID, NAME", 4)
    ('ID, NAME', 'ID, ...')
    """
    return text if len(text) <= most else f"{text[:most]}..."


class Wrong(ValueError):
    """Bytes that are no value of their encoding. `kind` is a member of errors.REJECT_KINDS."""

    def __init__(self, kind: str, offset: int, expected: str, found: str):
        super().__init__(f"{kind} at byte {offset}: expected {expected}, found {found}")
        self.kind, self.offset, self.expected, self.found = kind, offset, expected, found
