"""A background process of the demo: makes the simulated nodes, then binds their volumes until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path

from podwarden.cli.locks import hold
from podwarden.errors import PodWardenError
from podwarden.kube.client import Client
from podwarden.kube.connect import read_kubeconfig
from podwarden.simulator.fleet import Fleet
from podwarden.simulator.fleet_file import DEFAULT, SimulatedNode, read_node_file
from podwarden.simulator.fleet_openb import read_openb
from podwarden.simulator.fleet_volumes import VolumeBinder

log = logging.getLogger(__name__)
AGAIN = 1.0  # seconds between two tries to reach the engine


def nodes_of(file: Path | None) -> tuple[SimulatedNode, ...]:
    """The nodes of a file: YAML, or a node list of the openb traces (CSV). Invalid names every fault."""
    path = file or DEFAULT
    text = path.read_text(encoding="utf-8")
    return read_openb(text, path.name) if path.suffix == ".csv" else read_node_file(text, path.name)


async def keep(kubeconfig: str, nodes: tuple[SimulatedNode, ...]) -> None:
    client = Client(read_kubeconfig(kubeconfig))
    try:
        await _started(Fleet(client, nodes))
        print("The nodes are there.", flush=True)
        await VolumeBinder(client).run()
    finally:
        await client.close()


async def _started(fleet: Fleet) -> None:
    while True:
        try:
            await fleet.start()
        except* PodWardenError as errors:
            log.warning("The nodes could not be made yet: %s", errors.exceptions[0])
            await asyncio.sleep(AGAIN)
        else:
            return


async def _until_told(kubeconfig: str, nodes: tuple[SimulatedNode, ...]) -> None:
    task = asyncio.ensure_future(keep(kubeconfig, nodes))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def main() -> None:
    lock, kubeconfig, *file = (Path(arg) for arg in sys.argv[1:])
    logging.basicConfig(level="WARNING", stream=sys.stderr)
    nodes = nodes_of(file[0] if file else None)
    with hold(lock):
        asyncio.run(_until_told(kubeconfig.read_text(encoding="utf-8"), nodes))


if __name__ == "__main__":
    main()
