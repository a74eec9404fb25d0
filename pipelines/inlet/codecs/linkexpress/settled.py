"""How a file that was begun goes on where options say more of its reading than when it was settled.

A reading is settled once, for a whole file, and is in the context of each block. An option that is set later chooses
among what was left: it holds for the blocks that are cut from then on, and for those that are decoded again. Where it
says that records lie elsewhere, no block can be read by it: what was landed keeps its reading, nothing more is cut, and
the rejects name `inlet replay --file`, which reads the file from its first byte.
"""

from dataclasses import replace
from typing import NamedTuple

from pydantic import BaseModel

from inlet.codecs.linkexpress.reject import change_seq_of, of_file
from inlet.errors import Reject

REMEDY = "`inlet replay --file` reads the file from its first byte"


class Settled(NamedTuple):
    """A reading as it is in force."""

    reading: dict
    begun: str = ""  # what of it options contradict, and what they say, in words; nothing where they do not
    options: str = ""

    def refused(self, data: bytes, context: dict) -> Reject:
        """Why nothing more of a file is cut."""
        expected = f"{self.options}, as options say; {REMEDY}"
        reject = of_file("ambiguous_layout", data, expected, f"a file that was begun as {self.begun}")
        return replace(reject, change_seq=change_seq_of(context, 0))

    def explained(self, reject: Reject) -> Reject:
        """A reject of a block; where options contradict its reading, it says so."""
        if not self.begun:
            return reject
        why = f"the file was begun as {self.begun}, and options say {self.options}: {REMEDY}"
        return replace(reject, expected=f"{reject.expected} ({why})")


def option_values(options: BaseModel, names) -> dict:
    """What options say of members of a reading."""
    values = {name: getattr(options, name) for name in names if name in type(options).model_fields}
    return {name: value for name, value in values.items() if value != "auto"}


def contradicted(reading: dict, begun: dict, now: dict) -> Settled:
    """A reading that goes on as it was begun. In: what options call it, and what they say."""
    names = [name for name in now if now[name] != begun.get(name)]
    words = [", ".join(f"{name} {of.get(name)}" for name in names) for of in (begun, now)]
    return Settled(reading, *words)
