"""Kubernetes quantities, read exactly: `16Gi`, `1500m`, `12e3`, `0.5`. No float is involved."""

from __future__ import annotations

import math
import re
from fractions import Fraction

MIB = 1 << 20

_QUANTITY = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)",
    re.ASCII,
)
_SUFFIX = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(1 << 10), "Mi": Fraction(1 << 20), "Gi": Fraction(1 << 30),
    "Ti": Fraction(1 << 40), "Pi": Fraction(1 << 50), "Ei": Fraction(1 << 60),
}  # fmt: skip


def parse_quantity(text: object) -> Fraction:
    """The exact value of a quantity as the API gives it (a text, or a whole number).

    ValueError for anything that the API server would not send.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"not a quantity: {str(text)[:40]!r}")
    sign, number, exponent, suffix = match.groups()
    value = Fraction(number if number[0] != "." else f"0{number}")
    value *= Fraction(10) ** int(exponent[1:]) if exponent else _SUFFIX[suffix or ""]
    return -value if sign == "-" else value


def to_mib(text: object) -> int:
    """Bytes as whole MiB, rounded down: what is there never looks larger than it is."""
    return math.floor(parse_quantity(text) / MIB)


def to_milli(text: object) -> int:
    """CPU as whole milli-cores, rounded up as the scheduler does for requests."""
    return math.ceil(parse_quantity(text) * 1000)


def to_int(text: object) -> int:
    """A plain number, rounded down."""
    return math.floor(parse_quantity(text))
