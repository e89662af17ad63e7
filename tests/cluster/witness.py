"""Watches a plant while it works: a thread that asks the oracle again and again and remembers what stayed untrue.

A look is four lists and a queue, not one moment: what it finds counts only once it outlived `PATIENCE` seconds in
which the nodes it rests on did not change. Clocks stand still while no PodWarden leads the cluster.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Self

import httpx
from oracle import Json, world
from oracle_reasons import Finding, idle_for_head, untrue
from plant import Desk, Plant, Warden
from rawapi import RawApi

EVERY = 0.3  # seconds between looks
IDLE = 2.0  # seconds that capacity may stay free which the head of the queue could use
PATIENCE = 2.5  # seconds that a statement may lag behind the cluster
LOOKS = 4  # looks at least, so that a slow look is no proof
LISTS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "resourceslices": "/apis/resource.k8s.io/v1/resourceslices",
    "resourceclaims": "/apis/resource.k8s.io/v1/resourceclaims",
}


class Memory:
    """How long each finding has lasted. `add` is given one look at a time and returns what lasted too long."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, ...], tuple[float, Any, int]] = {}

    def clear(self) -> None:
        self._since.clear()

    def add(
        self, found: list[tuple[Finding, Any]], began: float, ended: float, limit: float
    ) -> list[str]:
        """found: with the state that each rests on. began, ended: when the look was taken."""
        late, seen = [], {}
        for finding, state in found:
            since, before, looks = self._since.get(finding.about, (ended, state, 0))
            if before != state:
                since, looks = ended, 0
            seen[finding.about] = (since, state, looks + 1)
            if began - since > limit and looks + 1 >= LOOKS:
                late.append(f"for {began - since:.1f} s: {finding.text}")
        self._since = seen
        return late


class Witness:
    """Use as a context manager around what is to be watched. faults: what was untrue for too long."""

    def __init__(self, plant: Plant, warden: Warden) -> None:
        self.faults: dict[str, str] = {}
        self.looks = 0
        self.judged = 0  # looks at a queue that was not empty
        self.ended: dict[str, Json] = {}  # pods that succeeded, by uid
        self._desk = Desk(warden)
        self._raw = RawApi(plant.engine.kubeconfig)
        self._reasons, self._idle = Memory(), Memory()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._broken: BaseException | None = None

    def __enter__(self) -> Self:
        self._desk.login()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._desk.close()
        self._raw.close()
        if self._broken is not None:
            raise AssertionError("the witness itself failed") from self._broken

    def write(self, file: Path) -> None:
        file.write_text("\n".join(self.faults.values()))

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                self._look()
                self._stop.wait(max(EVERY - (time.monotonic() - began), 0.02))
        except BaseException as error:  # noqa: BLE001 - told by __exit__
            self._broken = error

    def _look(self) -> None:
        began = time.monotonic()
        try:
            objects = {name: self._raw.items(path) for name, path in LISTS.items()}
            queue = self._queue()
        except httpx.TransportError:
            queue, objects = None, {}
        for pod in objects.get("pods", []):
            if pod["status"].get("phase") == "Succeeded":
                self.ended[pod["metadata"]["uid"]] = pod
        if queue is None:
            self._reasons.clear()
            self._idle.clear()
            return
        self.looks += 1
        self.judged += bool(queue)
        now = world(objects)
        for text in now.broken:
            self._fault(text)
        names = {w["name"] for w in self._all}
        found = [
            (finding, tuple(now.rooms[room].state for room in finding.rooms))
            for finding in untrue(now, queue, names)
        ]
        ended = time.monotonic()
        for text in self._reasons.add(found, began, ended, PATIENCE):
            self._fault(text)
        idle = idle_for_head(now, queue)
        for text in self._idle.add([(idle, None)] if idle else [], began, ended, IDLE):
            self._fault(text)

    def _queue(self) -> list[Json] | None:
        """None: nobody acts on the cluster now."""
        status = self._desk.get("status")
        acts = status["leading"] and all(
            c["reachable"] and not c["trouble"] for c in status["clusters"]
        )
        if not acts or not status["clusters"]:
            return None
        self._all = self._desk.workloads()
        found: list[Json] = self._desk.get("queue")
        return found

    def _fault(self, text: str) -> None:
        key = text.split(" [", maxsplit=1)[0].split(": ", maxsplit=1)[-1]
        self.faults.setdefault(key, f"{time.strftime('%H:%M:%S')} {text}")
