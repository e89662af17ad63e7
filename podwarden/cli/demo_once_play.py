"""Plays the cases side by side: asks PodWarden, then looks at the cluster itself until it is right or the time is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podwarden.cli.client import Api
from podwarden.cli.demo_once_cases import (
    After,
    Ask,
    Case,
    Deploy,
    Refused,
    Sees,
    Step,
    SwitchOff,
    Waits,
)
from podwarden.cli.demo_once_seen import Seen
from podwarden.cli.demo_once_wants import Nothing
from podwarden.cli.failure import Failure
from podwarden.errors import PodWardenError
from podwarden.kube.client import MERGE, Client
from podwarden.kube.kinds import NODE

POWER = "simulator.podwarden.io/power"
LOOK = 0.3  # seconds without a change after which it is looked again
WAITS_SOON = 5.0  # seconds until PodWarden says why something waits

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """seconds: from the first thing done with it to the last thing seen."""

    workload: str
    expected: str
    seen: str
    ok: bool
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Wrong(Exception):
    """What was seen instead."""


class Play:
    """api: of an administrator. seen: follows the cluster already. client: to switch nodes off."""

    def __init__(
        self, api: Api, seen: Seen, client: Client, cases: Sequence[Case], tell: Tell
    ) -> None:
        self._api = api
        self._seen = seen
        self._client = client
        self._cases = cases
        self._tell = tell
        self._done = {case.workload: 0 for case in cases}
        self._failed: set[str] = set()
        self._progress = asyncio.Event()

    async def run(self) -> list[Outcome]:
        """In the order of the cases, right or wrong."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._case(case)) for case in self._cases]
        return [task.result() for task in tasks]

    async def _case(self, case: Case) -> Outcome:
        name, began, said, ok = case.workload, time.monotonic(), [""], True
        try:
            for step in case.steps:
                text = await self._step(name, step)
                if isinstance(step, After) and not any(said):
                    began = time.monotonic()
                said.append(text)
                self._done[name] += 1
                self._move()
        except Wrong as wrong:
            said.append(str(wrong))
            ok = False
        except Failure as failure:
            said.append(f"PodWarden answered: {failure}")
            ok = False
        except PodWardenError as error:
            said.append(f"the cluster answered: {error.message}")
            ok = False
        if not ok:
            self._failed.add(name)
            self._move()
        seen = "; then ".join(filter(None, said)).rstrip(".")
        self._tell(f"{name}: {'right' if ok else 'WRONG'}: {seen}.")
        return Outcome(name, case.expected, seen, ok, round(time.monotonic() - began, 1))

    async def _step(self, name: str, step: Step) -> str:
        """What was seen, "" when the step only does something. Wrong; Failure."""
        match step:
            case Refused(order, code):
                return await self._refused({**order, "name": name}, code)
            case Sees():
                return await self._sees(name, step)
            case Waits(codes):
                return await self._waits(name, codes)
            case After(other, steps):
                await self._after(other, steps)
            case SwitchOff(node):
                await self._switch_off(node)
            case Deploy() | Ask():
                await asyncio.to_thread(self._order, name, step)
        return ""

    def _order(self, name: str, step: Deploy | Ask) -> None:
        body = {**step.order, "name": name}
        if isinstance(step, Deploy):
            self._api.post("workloads", body=body)
        elif step.what == "update":
            self._api.put("workloads", name, body=body)
        else:
            self._api.post("workloads", name, step.what)

    async def _refused(self, order: dict[str, Any], code: str) -> str:
        try:
            await asyncio.to_thread(self._api.post, "workloads", body=order)
        except Failure as failure:
            given = str((failure.details or {}).get("code", ""))
            if given == code:
                return f"refused with {code}"
            raise Wrong(f"refused otherwise: {failure}") from failure
        raise Wrong("it was accepted")

    async def _sees(self, name: str, step: Sees) -> str:
        deadline = time.monotonic() + step.seconds
        while True:
            findings = [want.look(self._seen, name) for want in step.wants]
            if all(finding.ok for finding in findings):
                return ", ".join(finding.text for finding in findings)
            left = deadline - time.monotonic()
            if left <= 0:
                wrong = ", ".join(finding.text for finding in findings if not finding.ok)
                raise Wrong(f"after {step.seconds:.0f} s: {wrong}")
            await self._seen.change(min(left, LOOK))

    async def _waits(self, name: str, codes: frozenset[str]) -> str:
        deadline = time.monotonic() + WAITS_SOON
        while True:
            shown = await asyncio.to_thread(self._api.get, "workloads", name)
            code = (shown["reason"] or {}).get("code", "no reason")
            there = Nothing().look(self._seen, name)
            right = shown["state"] == "queued" and code in codes and shown["position"] == 1
            if right and there.ok:
                return f"waits with {code}, {there.text}"
            if shown["state"] != "queued" or not there.ok or time.monotonic() > deadline:
                raise Wrong(f"{shown['state']} with {code}, {there.text}")
            await self._seen.change(LOOK)

    async def _switch_off(self, node: str) -> None:
        self._tell(f"{node} is switched off.")
        await self._client.request(
            "PATCH",
            NODE.path(name=node),
            f"switch off {node}",
            body={"metadata": {"labels": {POWER: "off"}}},
            content_type=MERGE,
        )

    async def _after(self, other: str, steps: int) -> None:
        wanted = steps or len(next(c for c in self._cases if c.workload == other).steps)
        while self._done[other] < wanted:
            if other in self._failed:
                raise Wrong(f"not tried, because {other} went wrong")
            await self._progress.wait()

    def _move(self) -> None:
        self._progress.set()
        self._progress = asyncio.Event()
