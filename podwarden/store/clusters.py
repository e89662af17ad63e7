"""Clusters. Their kubeconfigs are encrypted and handed out only one at a time, by name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, select, update

from podwarden.domain.cluster import Cluster
from podwarden.errors import Conflict, NotFound
from podwarden.store import tables
from podwarden.store.book import Book, check_name
from podwarden.store.keys import Sealed

_table = tables.clusters
_shown = [column for column in _table.c if column.name not in ("kubeconfig", "key_id")]


class Clusters(Book):
    def add(self, cluster: Cluster, kubeconfig: str) -> None:
        """Invalid names `name`; Conflict: the name is taken."""
        check_name("name", cluster.name)
        added = self._insert(
            _table, name=cluster.name, **_columns(cluster), **self._seal(cluster.name, kubeconfig)
        )
        if added is None:
            raise Conflict(f"There is a cluster named {cluster.name} already: choose another name.")

    def get(self, name: str) -> Cluster:
        row = self._run(select(*_shown).where(_table.c.name == name)).one_or_none()
        if row is None:
            raise _not_found(name)
        return _cluster(row)

    def list(self) -> tuple[Cluster, ...]:
        return tuple(_cluster(row) for row in self._run(select(*_shown).order_by(_table.c.name)))

    def save(self, cluster: Cluster, kubeconfig: str | None = None) -> None:
        """What is known of it now; kubeconfig None keeps the stored one. NotFound."""
        sealed = {} if kubeconfig is None else self._seal(cluster.name, kubeconfig)
        change = update(_table).where(_table.c.name == cluster.name)
        if self._run(change.values(**_columns(cluster), **sealed)).rowcount != 1:
            raise _not_found(cluster.name)

    def remove(self, name: str) -> None:
        """With its kubeconfig and the devices known of it. Its workloads' rows are the caller's. NotFound."""
        if self._run(delete(_table).where(_table.c.name == name)).rowcount != 1:
            raise _not_found(name)

    def kubeconfig(self, name: str) -> str:
        """NotFound; Unavailable: it cannot be decrypted, and what to do about it."""
        row = self._run(
            select(_table.c.kubeconfig, _table.c.key_id).where(_table.c.name == name)
        ).one_or_none()
        if row is None:
            raise _not_found(name)
        return self._means.keyring.unseal(_label(name), Sealed(row.key_id, row.kubeconfig))

    def _seal(self, name: str, kubeconfig: str) -> dict[str, Any]:
        sealed = self._means.keyring.seal(_label(name), kubeconfig)
        return {"kubeconfig": sealed.data, "key_id": sealed.key_id}


def _label(name: str) -> str:
    return f"kubeconfig/{name}"  # bound to the value: stored ones would not decrypt under another


def _columns(cluster: Cluster) -> dict[str, Any]:
    return {
        "server": cluster.server,
        "added_at": cluster.added_at,
        "version": cluster.version,
        "simulated": cluster.simulated,
        "notes": list(cluster.notes),
    }


def _cluster(row: Row[Any]) -> Cluster:
    return Cluster(
        name=row.name,
        server=row.server,
        added_at=row.added_at,
        version=row.version,
        simulated=row.simulated,
        notes=tuple(row.notes),
    )


def _not_found(name: str) -> NotFound:
    return NotFound(f"There is no cluster named {name}.")
