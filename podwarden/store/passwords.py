"""Passwords: argon2id, 19 MiB and 3 passes, about 30 ms a try."""

from __future__ import annotations

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from podwarden.errors import Invalid

SHORTEST = 8
LONGEST = 1024
_hasher = PasswordHasher(time_cost=3, memory_cost=19 * 1024, parallelism=1)


def hash_password(password: str) -> str:
    """Invalid names the field `password`, never its value."""
    if len(password) < SHORTEST:
        raise Invalid.of("password", "", f"at least {SHORTEST} characters")
    if len(password) > LONGEST:
        raise Invalid.of("password", "", f"at most {LONGEST:,} characters")
    return _hasher.hash(password.encode("utf-8", "surrogatepass"))


def password_fits(stored: str | None, password: str) -> bool:
    """Where stored is None there is no such user: it takes as long, so that names cannot be found out by time."""
    if len(password) > LONGEST:
        return False
    try:
        _hasher.verify(stored or _nobody(), password.encode("utf-8", "surrogatepass"))
    except (VerificationError, InvalidHashError):
        return False
    return stored is not None


@cache
def _nobody() -> str:
    return _hasher.hash("a hash that belongs to nobody")
