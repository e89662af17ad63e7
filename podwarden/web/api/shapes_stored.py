"""The JSON of storages and secrets: what is accepted and what is answered."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from podwarden.web.api.shapes import Given, Line, Shape, Word


class StorageOrder(Given):
    """Exactly one of `nfs` and `host`. cluster: where several have a node of that name."""

    name: Word
    nfs: Line = Field(default="", description="such as nas:/media")
    host: Line = Field(default="", description="such as gpu1:/srv/renders")
    cluster: Word = ""
    check: bool = Field(default=True, description="an NFS server must answer, now and at each use")


class StorageShape(Shape):
    """kind: `nfs` or `host`. node and cluster are null for NFS, server is null for a folder of a node."""

    name: str
    kind: str
    place: str
    server: str | None
    cluster: str | None
    node: str | None
    path: str
    checked: bool
    added_at: datetime
    added_by: str
    used_by: list[str]


class SecretOrder(BaseModel):
    """registry and user: the value is this user's password there, and is tried before it is kept.

    The value is taken as it is, with the spaces at its ends.
    """

    model_config = ConfigDict(extra="forbid")

    value: SecretStr = Field(max_length=256 * 1024)
    registry: Word = ""
    user: Word = ""


class SecretShape(Shape):
    """Never its value. registry: the host that it is a login of, null for any other value."""

    name: str
    owner: str
    changed_at: datetime
    registry: str | None
    used_by: list[str]
