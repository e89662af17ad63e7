"""Churn: seeded chaos on a plant, with a book of what must have come of it.

Users deploy, stop, start, update, delete; foreign pods take GPUs; pods are deleted by hand; nodes go and come; PodWarden
is killed at any moment and started again. Every request is repeated until it is answered, submits under one key.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
from plant import Desk, Plant, Warden, job, now, service
from rawapi import Json

NODES = """
nodes:
  - {name: n1, role: server, cpu: 8, memory: 32Gi}
  - {name: n2, cpu: 12, memory: 64Gi}
  - name: n3
    cpu: 12
    memory: 64Gi
    gpus: [{model: RTX 3060, vram: 12GB, compute: "8.6", encoders: 3}, {model: RTX 3090, vram: 24GB, compute: "8.6"}]
  - name: n4
    cpu: 12
    memory: 64Gi
    gpus: [{model: RTX A4000, vram: 16GB, compute: "8.6", count: 2}]
  - name: n5
    cpu: 4
    memory: 16Gi
    gpus: [{model: GTX 1070, vram: 8GB, compute: "6.1", encoders: 3}]
  - name: n6
    cpu: 12
    memory: 64Gi
    gpus: [{model: RTX 3090, vram: 24GB, compute: "8.6", count: 2}]
  - name: n7
    cpu: 4
    memory: 16Gi
    gpus: [{model: RTX 3060, vram: 12GB, compute: "8.6", encoders: 3}]
"""
OUTSIDE = "outsiders"
FOREIGN = f"/api/v1/namespaces/{OUTSIDE}/pods"
REQUESTS = [
    "", "", "count: 1", "vram: 4GB", "vram: 8GB", "vram: 12GB", "vram: 16GB", "vram: 24GB",
    "vram: 2GB, sharing: shared", "vram: 5GB, sharing: shared", "vram: 10GB, sharing: shared",
    "vram: 3GB, sharing: shared, encoder_sessions: 1", "count: 2", "count: 2, vram: 16GB",
    "count: 2, vram: 24GB", "model: [RTX 3090]", 'vram: 8GB, compute: ">=8.0"',
]  # fmt: skip
IMPOSSIBLE = [
    ("vram: 80GB", "NO_DEVICE_LARGE_ENOUGH"),
    ("count: 3", "COUNT_TOO_LARGE"),
    ("model: [H200]", "NO_SUCH_MODEL"),
    ("vram: 40GB, sharing: shared", "NO_DEVICE_LARGE_ENOUGH"),
]
PRIORITIES = ["critical", "high", "normal", "normal", "normal", "low", "idle"]
ANSWER = 40.0  # seconds within which every request is answered, restarts included


@dataclass
class Expected:
    """What was asked for, as far as it was answered. unsure: an answer was lost on the way."""

    name: str
    kind: str
    file: str
    tasks: int = 1
    fails: bool = False
    stopped: bool = False
    deleted: bool = False
    unsure: bool = False
    runs: int = 1  # times it was asked to run


@dataclass
class Churn:
    plant: Plant
    desk: Desk
    warden: Warden
    seed: int
    count: int
    kills: int
    book: dict[str, Expected] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)  # answers that must not be
    told: list[str] = field(default_factory=list)  # what was done, for whoever reads a failure
    killed: int = 0
    _off: tuple[str, float] | None = None
    _foreign: int = 0

    def run(self) -> None:
        """All steps in a seeded order; ends with every node on, PodWarden up and no foreign pods."""
        dice = random.Random(self.seed)
        self._dice = dice
        self.plant.raw.create("/api/v1/namespaces", {"metadata": {"name": OUTSIDE}})
        share = self.count
        steps: list[Callable[[], None]] = (
            [self._submit] * share
            + [self._order] * (share * 4 // 5)
            + [self._outsider] * (share // 6)
            + [self._impossible] * (share // 15)
            + [self._delete_pod] * (share // 5)
            + [self._flip_node] * (share // 12)
        )
        dice.shuffle(steps)
        for _ in range(self.kills):
            steps.insert(dice.randrange(len(steps) // 10, len(steps)), self._kill)
        pause = threading.Event()  # nobody sets it: the load has a pace, it waits for nothing
        for step in steps:
            step()
            self._nodes_back(now())
            pause.wait(dice.uniform(0.05, 0.6))
        self._nodes_back(float("inf"))
        for pod in self.plant.raw.items(FOREIGN):
            self.plant.raw.delete(f"{FOREIGN}/{pod['metadata']['name']}", gracePeriodSeconds="0")

    # --- steps ---------------------------------------------------------------------------------

    def _submit(self) -> None:
        wanted = self._draw(f"w{len(self.book)}")
        self.book[wanted.name] = wanted
        answer, _ = self._ask("POST", "workloads", {"file": wanted.file}, key=f"k-{wanted.name}")
        self._tell(f"submit {wanted.name}: {answer.status_code}")
        if answer.status_code != 201:
            self.wrong.append(f"submit {wanted.file}: {answer.status_code} {answer.text}")
            del self.book[wanted.name]
        elif answer.json()["workload"]["name"] != wanted.name:
            self.wrong.append(f"submit {wanted.name} answered {answer.text}")

    def _impossible(self) -> None:
        gpu, code = self._dice.choice(IMPOSSIBLE)
        name = f"never{len(self.told)}"
        answer, _ = self._ask("POST", "workloads", {"file": service(name, gpu)}, key=name)
        self._tell(f"impossible {gpu}: {answer.status_code}")
        body = answer.json()
        # Just started, PodWarden has not seen the whole cluster and refuses nothing; then it waits.
        if answer.status_code == 201:
            self.book[name] = Expected(name, "service", service(name, gpu), unsure=True)
        elif body.get("code") != code:
            self.wrong.append(f"{gpu} was refused with {body}")

    def _order(self) -> None:
        dice = self._dice
        alive = [e for e in self.book.values() if not e.deleted]
        if not alive:
            return
        # Services have no end of their own: without this they would own every GPU soon.
        one = dice.choice([*alive, *[e for e in alive if e.kind == "service" and not e.stopped]])
        does = {
            "stop": 3, "start": 3 if one.stopped else 1, "update": 2, "delete": 3, "priority": 2,
        }  # fmt: skip
        what = dice.choices(list(does), list(does.values()))[0]
        getattr(self, f"_{what}")(one)

    def _stop(self, one: Expected) -> None:
        if self._change(one, "POST", f"workloads/{one.name}/stop"):
            one.stopped = True

    def _start(self, one: Expected) -> None:
        if self._change(one, "POST", f"workloads/{one.name}/start"):
            one.stopped = False
            one.runs += 1

    def _delete(self, one: Expected) -> None:
        answer, repeated = self._ask("DELETE", f"workloads/{one.name}")
        self._tell(f"delete {one.name}: {answer.status_code}")
        one.deleted = answer.is_success or (repeated and answer.status_code == 404)
        if not one.deleted:
            self.wrong.append(f"delete {one.name}: {answer.status_code} {answer.text}")

    def _update(self, one: Expected) -> None:
        if one.kind != "service":
            return
        file = one.file + f"env: {{STEP: '{len(self.told)}'}}\n"
        body = {"file": file, "recreate": self._dice.random() < 0.7}
        self._change(one, "PUT", f"workloads/{one.name}", body)

    def _priority(self, one: Expected) -> None:
        body = {"priority": self._dice.choice(PRIORITIES)}
        self._change(one, "PUT", f"workloads/{one.name}/priority", body)

    def _outsider(self) -> None:
        """A pod that asks for a GPU by the extended resource, as a chart would."""
        self._foreign += 1
        seconds = self._dice.uniform(2, 8)
        limits = {"nvidia.com/gpu": "1", "cpu": "100m", "memory": "64Mi"}
        self.plant.raw.create(
            FOREIGN,
            {
                "metadata": {
                    "name": f"foreign-{self._foreign}",
                    "annotations": {"simulator.podwarden.io/run-seconds": f"{seconds:.1f}"},
                },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.org/x:1",
                            "resources": {"limits": limits},
                        }
                    ],
                },
            },
        )
        self._tell(f"foreign pod for {seconds:.1f} s")

    def _delete_pod(self) -> None:
        live = [
            pod["metadata"]["name"]
            for pod in self.plant.pods()
            if pod["status"]["phase"] in {"Pending", "Running"}
            and "deletionTimestamp" not in pod["metadata"]
        ]
        if live:
            name = self._dice.choice(sorted(live))
            self.plant.raw.delete(f"/api/v1/namespaces/podwarden/pods/{name}")
            self._tell(f"pod {name} deleted by hand")

    def _flip_node(self) -> None:
        """At most one is off: with most of them silent Kubernetes believes that it is cut off itself."""
        if self._off is None:
            name = self._dice.choice(["n2", "n3", "n4", "n5", "n6", "n7"])
            assert self.plant.fleet is not None
            self.plant.fleet.switch_off(name)
            self._off = name, now() + self._dice.choice([3, 12, 26])
            self._tell(f"{name} is switched off")

    def _nodes_back(self, moment: float) -> None:
        if self._off is not None and self._off[1] <= moment:
            assert self.plant.fleet is not None
            self.plant.fleet.switch_on(self._off[0])
            self._tell(f"{self._off[0]} is switched on")
            self._off = None

    def _kill(self) -> None:
        """Right behind a few orders, so that it hits what they set in motion."""
        for _ in range(self._dice.randrange(4)):
            self._dice.choice([self._submit, self._order])()
        threading.Event().wait(self._dice.uniform(0, 0.3))
        self.warden.kill()
        self.killed += 1
        self._tell("SIGKILL")
        self.warden.start(wait=False)

    # --- requests --------------------------------------------------------------------------------

    def _change(self, one: Expected, method: str, path: str, body: Json | None = None) -> bool:
        """Whether it was done; a state that forbids it is a fair answer."""
        answer, repeated = self._ask(method, path, body)
        self._tell(f"{method} {path}: {answer.status_code}")
        one.unsure = one.unsure or repeated
        if answer.status_code not in {200, 201, 202, 409}:
            self.wrong.append(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.is_success

    def _ask(
        self, method: str, path: str, body: Json | None = None, key: str = ""
    ) -> tuple[httpx.Response, bool]:
        """The answer, and whether an earlier one may have been lost."""
        headers = {"Idempotency-Key": key} if key else {}
        deadline, repeated = now() + ANSWER, False
        pause = threading.Event()
        while True:
            try:
                answer = self.desk.ask(method, path, json=body, headers=headers)
            except httpx.ConnectError:  # never arrived
                answer = None
            except httpx.TransportError:
                answer, repeated = None, True
            if answer is not None and answer.status_code != 503:
                return answer, repeated
            assert now() < deadline, f"{method} {path} was not answered within {ANSWER} s"
            pause.wait(0.1)

    def _tell(self, text: str) -> None:
        self.told.append(f"{time.strftime('%H:%M:%S')} {text}")

    # --- drawing ---------------------------------------------------------------------------------

    def _draw(self, name: str) -> Expected:
        dice = self._dice
        gpu = dice.choice(REQUESTS)
        more = f"priority: {dice.choice(PRIORITIES)}\n"
        kind = dice.choices(["service", "job", "array"], [4, 4, 2])[0]
        if kind == "service":
            if dice.random() < 0.15 and "count: 2" not in gpu:  # twice two large ones fit nowhere
                more += "replicas: 2\n"
            if dice.random() < 0.15:
                more += 'annotations: {simulator.podwarden.io/crash-after: "1", simulator.podwarden.io/crash-times: "1"}\n'
            return Expected(name, kind, service(name, gpu, more))
        seconds = round(dice.uniform(0.5, 5), 1)
        rules = "retries: 0"
        fails = dice.random() < 0.12
        if dice.random() < 0.5:
            rules += f", time_limit: {dice.choice([20, 30, 60])}s"
        tasks = dice.randrange(2, 9) if kind == "array" else 1
        if kind == "array":
            first = dice.randrange(100)
            rules += f", array: {first}-{first + tasks - 1}"
            rules += dice.choice(["", ", parallelism: 2", ", parallelism: max"])
        file = job(name, gpu, seconds, rules, more, fail=fails)
        return Expected(name, kind, file, tasks, fails)
