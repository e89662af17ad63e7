"""What may be wanted of a workload, judged by the cluster's own objects."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from podwarden.cli.demo_once_seen import Copy, Seen
from podwarden.cli.words import count

ALL_SHARES = 64


@dataclass(frozen=True, slots=True)
class Finding:
    """text: what the cluster shows, as a sentence without its full stop."""

    ok: bool
    text: str


class Want(Protocol):
    def look(self, seen: Seen, name: str) -> Finding: ...


@dataclass(frozen=True, slots=True)
class Nothing:
    """No object of it is or ever was in the cluster."""

    def look(self, seen: Seen, name: str) -> Finding:
        made = len(seen.ever[name])
        return Finding(
            not made, f"{count(made, 'object')} of it made" if made else "nothing of it made"
        )


@dataclass(frozen=True, slots=True)
class Runs:
    """As many ready copies on one of the nodes, each with as many GPUs of a model on its own node: whole ones,
    or memory_mib of a shared one. revision: of the workload file, "" = any.
    """

    nodes: frozenset[str]
    model: str = ""
    gpus: int = 0
    memory_mib: int = 0
    copies: int = 1
    revision: str = ""

    def look(self, seen: Seen, name: str) -> Finding:
        live = [c for c in seen.copies(name) if not c.going and not c.ended]
        if not live:
            return Finding(ok=False, text="it does not run")
        ready = all(copy.ready for copy in live)
        ok = ready and len(live) == self.copies and all(self._right(copy) for copy in live)
        where = "; ".join(sorted(copy.where for copy in live))
        parts = "" if not self.memory_mib else f", {_mib(live)} MiB of it"
        return Finding(ok, f"{'runs' if ready else 'starts'} on {where}{parts}")

    def _right(self, copy: Copy) -> bool:
        pieces = copy.pieces
        distinct = {piece.gpu.place for piece in pieces}
        return (
            copy.node in self.nodes
            and self.revision in ("", copy.revision)
            and len(pieces) == len(distinct) == self.gpus
            and all(p.gpu.node == copy.node for p in pieces)
            and all(self.model in ("", p.gpu.model) for p in pieces)
            and all(
                (p.shares, p.memory_mib) == (1, self.memory_mib)
                if self.memory_mib
                else p.shares == ALL_SHARES
                for p in pieces
            )
        )


def _mib(copies: list[Copy]) -> int:
    return sum(piece.memory_mib for copy in copies for piece in copy.pieces)


@dataclass(frozen=True, slots=True)
class SameGpu:
    """It runs on the very GPU of another workload, and both together within what that GPU has."""

    other: str

    def look(self, seen: Seen, name: str) -> Finding:
        mine, theirs = (
            [p for c in seen.copies(who) if not c.ended for p in c.pieces]
            for who in (name, self.other)
        )
        same = {p.gpu for p in mine} == {p.gpu for p in theirs} and len(mine) == 1 == len(theirs)
        used = sum(p.memory_mib for p in (*mine, *theirs))
        if not same:
            return Finding(ok=False, text=f"not the GPU of {self.other}")
        gpu = mine[0].gpu
        text = f"{used} of {gpu.memory_mib} MiB of one {gpu.model} with {self.other}"
        return Finding(0 < used <= gpu.memory_mib, text)


@dataclass(frozen=True, slots=True)
class MustSpill:
    """It runs on a node with GPUs, and no node without has the cores for it."""

    def look(self, seen: Seen, name: str) -> Finding:
        nodes = {c.node for c in seen.copies(name) if not c.ended and c.node}
        asked = seen.asked_cpu(name)
        free = {node: seen.free_cpu(node, name) for node in seen.plain_nodes()}
        roomy = max(free.values(), default=0.0)
        ok = bool(nodes) and nodes <= seen.gpu_nodes() and asked > 0 and roomy < asked
        return Finding(ok, f"asks {asked:g} cores, nodes without GPUs have {roomy:g} free at most")


@dataclass(frozen=True, slots=True)
class Ended:
    """The cluster counts so many tasks as done, each with a number of its own, and gives it no GPU any more."""

    tasks: int = 1
    frames: frozenset[str] = frozenset()

    def look(self, seen: Seen, name: str) -> Finding:
        done = int(seen.job(name).get("succeeded", 0))
        frames = Counter(c.frame for c in seen.copies(name) if c.succeeded and c.frame)
        held = len(seen.given(name))
        right = not self.frames or (frames.keys() == self.frames and max(frames.values()) == 1)
        text = f"{count(done, 'task')} of {self.tasks} done, {count(held, 'GPU')} held"
        return Finding(done == self.tasks and not held and right, text)


@dataclass(frozen=True, slots=True)
class Idle:
    """No copy of it is left, and it holds no GPU."""

    def look(self, seen: Seen, name: str) -> Finding:
        copies, held = len(seen.copies(name)), len(seen.given(name))
        text = "stopped" if not copies else f"{count(copies, 'copy', 'copies')} left"
        return Finding(not copies and not held, f"{text}, {count(held, 'GPU')} held")


@dataclass(frozen=True, slots=True)
class TookOver:
    """The GPU it has was the other's, and was given back before it was taken."""

    other: str

    def look(self, seen: Seen, name: str) -> Finding:
        places = seen.given(name)
        turns = [turn for place in places for turn in seen.holders(place)]
        wanted = [(self.other, True), (self.other, False), (name, True)]
        ok = len(places) == 1 and turns[-3:] == wanted
        return Finding(ok, f"its GPU came from {turns[-2][0] if len(turns) > 1 else 'nobody'}")


@dataclass(frozen=True, slots=True)
class Restarted:
    """The same copy crashed, was started again and is ready."""

    times: int
    exit_code: int

    def look(self, seen: Seen, name: str) -> Finding:
        copies = [c for c in seen.copies(name) if not c.going]
        ever = sum(1 for made in seen.ever[name] if made.startswith("pods/"))
        if len(copies) != 1:
            return Finding(ok=False, text=f"{count(len(copies), 'copy', 'copies')}")
        one = copies[0]
        ok = one.ready and ever == 1
        ok = ok and (one.restarts, one.exit_code) == (self.times, self.exit_code)
        code = "" if one.exit_code is None else f" after exit code {one.exit_code}"
        return Finding(ok, f"started again {count(one.restarts, 'time')}{code}")


@dataclass(frozen=True, slots=True)
class NeverAway:
    """From its first ready copy on there was one at every moment."""

    def look(self, seen: Seen, name: str) -> Finding:
        counts = seen.ready_counts[name]
        since = next((place for place, ready in enumerate(counts) if ready), len(counts))
        fewest = min(counts[since:], default=0)
        return Finding(
            fewest > 0, f"at least {count(fewest, 'ready copy', 'ready copies')} all the time"
        )


@dataclass(frozen=True, slots=True)
class NodeAway:
    """The cluster takes the node for lost."""

    node: str

    def look(self, seen: Seen, name: str) -> Finding:  # noqa: ARG002 - one face for all
        ready = seen.node_ready(self.node)
        return Finding(not ready, f"{self.node} {'answers' if ready else 'does not answer'}")
