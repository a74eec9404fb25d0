"""What a field function raises: the kind of wrongness, the byte within the field, what was expected, what was found."""


class Wrong(ValueError):
    """Bytes that are no value of their encoding. `kind` is a member of errors.REJECT_KINDS."""

    def __init__(self, kind: str, offset: int, expected: str, found: str):
        super().__init__(f"{kind} at byte {offset}: expected {expected}, found {found}")
        self.kind, self.offset, self.expected, self.found = kind, offset, expected, found
