"""Secrets come from the environment: `${NAME}` in inlet.yml stands for the variable NAME, and is what logs, errors and
tables show.
"""

import os
import re

from inlet.errors import EnvironmentLacks

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def filled(text: str, what: str) -> str:
    """A text with the values of the variables that it names. In: what names them, for a person. Raises:
    EnvironmentLacks for one that is not set.
    """
    if lacking := [name for name in VARIABLE.findall(text) if name not in os.environ]:
        raise EnvironmentLacks(f"{lacking[0]}, which {what} names, is not set", f"export {lacking[0]}=...")
    return VARIABLE.sub(lambda match: os.environ[match[1]], text)
