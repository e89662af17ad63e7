"""Whether a server in the network answers: one connection, a bounded time, the cause in words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from podwarden.control.clock import Clock
from podwarden.control.needs import storages_of
from podwarden.domain.workload import Spec
from podwarden.errors import Invalid, Problem
from podwarden.store import Store

NFS_PORT = 2049
WITHIN = 10.0  # seconds
BELIEVED = 30.0  # seconds that a good answer counts; a bad one counts a tenth of it


async def trouble_at(host: str, port: int, within: float = WITHIN) -> str:
    """Empty when something takes a connection there, else why not: `nas does not answer on TCP port 2049: …`."""
    try:
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        cause = f"nothing came back within {within:g} s"
    except socket.gaierror:
        cause = "the name is not known in this network"
    except (OSError, UnicodeError) as error:
        cause = _words(error)
    else:
        writer.close()
        return ""
    return f"{host} does not answer on TCP port {port}: {cause}"


def _words(error: OSError | UnicodeError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    said = error.strerror if isinstance(error, OSError) else None
    return (said or "it cannot be reached").lower()


class NfsServers:
    """Remembers for a while, so that a preview at each keystroke does not knock each time."""

    def __init__(self, clock: Clock, *, port: int = NFS_PORT, within: float = WITHIN) -> None:
        self._clock = clock
        self._port = port
        self._within = within
        self._said: dict[str, tuple[float, str]] = {}

    async def trouble(self, server: str) -> str:
        """Empty when it answers."""
        until, said = self._said.get(server, (0.0, ""))
        if until > self._clock.monotonic():
            return said
        said = await trouble_at(server, self._port, self._within)
        self._said = {s: known for s, known in self._said.items() if known[0] > self._clock.monotonic()}  # fmt: skip
        lasts = BELIEVED / 10 if said else BELIEVED
        self._said[server] = (self._clock.monotonic() + lasts, said)
        return said


async def check_servers(store: Store, servers: NfsServers, specs: Sequence[Spec]) -> None:
    """Invalid: an NFS server that one of these needs does not answer. Asked before anything is stored."""
    names = frozenset[str]().union(*(storages_of(spec) for spec in specs))
    if not names:
        return
    found = await store.read(lambda unit: unit.storages.list(names))
    looked = [storage for storage in found if storage.nfs and storage.checked]
    said = await asyncio.gather(*(servers.trouble(storage.server) for storage in looked))
    trouble = {s.name: why for s, why in zip(looked, said, strict=True) if why}
    problems = [
        Problem(
            f"volumes[{place}].storage",
            volume.storage,
            f"a storage whose NFS server answers; {trouble[volume.storage]}. Nothing was deployed",
        )
        for spec in specs
        for place, volume in enumerate(spec.volumes)
        if volume.storage in trouble
    ]
    if problems:
        raise Invalid(problems)
