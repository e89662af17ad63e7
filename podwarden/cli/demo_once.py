"""demo --once: the demo without anybody watching. Starts everything in a temporary folder, plays a fixed set of
workloads, compares each with what the cluster itself shows, and takes everything away again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from podwarden.cli.client import Api
from podwarden.cli.credentials import Target
from podwarden.cli.demo_once_cases import CASES, Case
from podwarden.cli.demo_once_play import Outcome, Play
from podwarden.cli.demo_once_seen import Seen
from podwarden.cli.demo_run import USER, Demo
from podwarden.cli.failure import REFUSED, Failure
from podwarden.cli.printing import Format, hint, say, table
from podwarden.cli.words import count
from podwarden.errors import PodWardenError
from podwarden.kube.client import Client
from podwarden.kube.connect import read_kubeconfig
from podwarden.simulator.engine import EngineOptions

NODE_GRACE = 8.0  # seconds; Kubernetes' own default is 50
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Opened = Callable[[str], None]


class Stopped(KeyboardInterrupt):
    """Somebody asked for the end. A kind of KeyboardInterrupt: an event loop lets these through."""


def once(output: Format, *, cases: Sequence[Case] = CASES, opened: Opened | None = None) -> int:
    """The exit code: 0 only when every outcome is right. opened: called with the cluster's kubeconfig before the
    first workload is deployed. Failure: it could not be started, or was stopped.
    """
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="podwarden-once-"))
    keep = True
    demo = Demo(folder, EngineOptions(node_grace=NODE_GRACE), bare=True)
    try:
        with _stoppable():
            report = _played(demo, folder, cases, opened)
        keep = not report["ok"]
    except Stopped as stopped:
        keep = False
        raise Failure("It was stopped before the end.", REFUSED) from stopped
    except PodWardenError as error:
        raise Failure(error.message, REFUSED) from error
    except TimeoutError as error:
        raise Failure("The cluster could not be read in time.", REFUSED) from error
    finally:
        _end(demo, folder, keep=keep)
    _print(output, {"ok": report.pop("ok"), "seconds": _since(began), **report})
    return REFUSED if keep else 0


def _played(
    demo: Demo, folder: Path, cases: Sequence[Case], opened: Opened | None
) -> dict[str, Any]:
    began = time.monotonic()
    hint(f"Kubernetes, simulated nodes and PodWarden are started in {folder}.")
    running = demo.start(nodes=None, port=_free_port(), tell=hint)
    text = demo.kubeconfig.read_text(encoding="utf-8")
    if opened is not None:
        opened(text)
    hint(
        f"They run after {_since(began)} s. {count(len(cases), 'workload')} are played. A node that is silent counts as "
        f"lost after {NODE_GRACE:.0f} s here, not after 50 s as usual, so that nobody has to wait for it."
    )
    outcomes = asyncio.run(_play(running.url, demo.password(), text, cases))
    return {
        "ok": all(outcome.ok for outcome in outcomes),
        "kubernetes": running.kubernetes,
        "simulated": True,
        "node_grace_seconds": NODE_GRACE,
        "outcomes": [outcome.as_json() for outcome in outcomes],
    }


async def _play(url: str, password: str, kubeconfig: str, cases: Sequence[Case]) -> list[Outcome]:
    client = Client(read_kubeconfig(kubeconfig))
    seen = Seen(client)
    with Api(Target(url, "")) as api:
        session = api.post("session", body={"name": USER, "password": password})
    try:
        await seen.start()
        with Api(Target(url, session["token"])) as api:
            return await Play(api, seen, client, cases, hint).run()
    finally:
        await seen.close()
        await client.close()


def _end(demo: Demo, folder: Path, *, keep: bool) -> None:
    """Nothing stays but, where something went wrong, the folder with all logs."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPS}
    try:
        hint("Everything is being stopped.")
        demo.stop()
    except PodWardenError as error:
        keep = True
        hint(error.message)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if keep:
        hint(f"What it had, and all its logs, are kept in {folder}.")
    else:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Stopped

    before = {number: signal.signal(number, stop) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(output: Format, report: dict[str, Any]) -> None:
    """One line for programs, a table for people."""
    if output is Format.JSON:
        print(json.dumps(report))
        return
    rows = [
        [
            outcome["workload"],
            "right" if outcome["ok"] else "WRONG",
            f"{outcome['seconds']:.1f}",
            outcome["seen"],
        ]
        for outcome in report["outcomes"]
    ]
    say(table(["WORKLOAD", "", "SECONDS", "SEEN IN THE CLUSTER"], rows))
    right = sum(1 for outcome in report["outcomes"] if outcome["ok"])
    say(
        f"{right} of {len(rows)} outcomes are right, after {report['seconds']:.0f} s, on Kubernetes "
        f"{report['kubernetes']} with simulated nodes."
    )


def _since(began: float) -> float:
    return round(time.monotonic() - began, 1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
