"""Storages and secrets to JSON shapes. Pure."""

from __future__ import annotations

from podwarden.control.answers import SecretView, StorageView
from podwarden.web.api import shapes_stored


def storage(view: StorageView) -> shapes_stored.StorageShape:
    noun = view.storage
    return shapes_stored.StorageShape(
        name=noun.name,
        kind="nfs" if noun.nfs else "host",
        place=noun.place,
        server=noun.server or None,
        cluster=noun.cluster or None,
        node=noun.node or None,
        path=noun.path,
        checked=noun.checked,
        added_at=noun.added_at,
        added_by=noun.added_by,
        used_by=list(view.used_by),
    )


def secret(view: SecretView) -> shapes_stored.SecretShape:
    return shapes_stored.SecretShape(
        name=view.name,
        owner=view.owner,
        changed_at=view.changed_at,
        registry=view.registry or None,
        used_by=list(view.used_by),
    )
