"""Secrets that a template has made for it when nobody gives one, such as the password of a new database."""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass

LENGTH = 24
_LETTERS = (
    string.ascii_letters + string.digits
)  # safe in an address, a shell and a configuration file


@dataclass(frozen=True, slots=True)
class Generated:
    """A secret to store before the workload: the parameter it stands for, and its name in the store.

    Where a secret of that name exists already, it is kept: the data of an earlier workload may need it.
    """

    parameter: str
    title: str
    secret: str


def generate() -> str:
    """A new random value: letters and digits, about 143 bits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(LENGTH))
