"""Who may do what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    role: Role
    created_at: datetime
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """What is shown of a token; its secret is stored only as a hash. session: made by a page login."""

    id: str
    user: str
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    session: bool = False


def may_change(user: User, owner: str) -> bool:
    """Admins change everything, members what is theirs, viewers nothing."""
    return user.role is Role.ADMIN or (user.role is Role.MEMBER and user.name == owner)
