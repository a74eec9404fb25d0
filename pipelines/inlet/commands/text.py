"""Values and sentences as the page for people shows them; what comes from data is escaped."""

import re
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup, escape


def words(text: str) -> Markup:
    """Text, with `commands` as such, that may be broken as a name may.

    >>> words("<b> `inlet run` of gold.orders")
    Markup('&lt;b&gt; <code>inlet run</code> of gold.<wbr>orders')
    """
    pieces = re.split(r"`([^`]+)`", text)
    return Markup("").join(
        Markup(f"<code>{breaks(piece)}</code>") if n % 2 else breaks(piece) for n, piece in enumerate(pieces)
    )


def breaks(text: str) -> Markup:
    """A name that may be broken where its parts meet.

    >>> breaks("gold.orders__past")
    Markup('gold.<wbr>orders__<wbr>past')
    """
    return Markup(re.sub(r"([./]|_+)(?=\w)", r"\1<wbr>", str(escape(text))))


def duration(seconds: float | None) -> str:
    """Seconds in the unit that a person would say.

    >>> duration(0), duration(0.42), duration(75), duration(66590), duration(900_000), duration(None)
    ('0 s', '0.4 s', '1 min 15 s', '18 h 29 min', '10 d 10 h', '')
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds % 1 and seconds < 10 else f"{seconds:.0f} s"
    whole = timedelta(seconds=round(seconds))
    hours, rest = divmod(whole.seconds, 3600)
    minutes, left = divmod(rest, 60)
    if whole.days:
        return f"{whole.days:,} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"


def size(num_bytes: float) -> str:
    """Bytes in the unit that a person would say.

    >>> size(0), size(2_047), size(4_260_451)
    ('0 B', '2.0 KB', '4.3 MB')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:,.1f} TB"


def cell(value: Any) -> str:
    """A value as the page shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)
