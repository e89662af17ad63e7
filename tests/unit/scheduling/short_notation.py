"""Snapshots in short notation, for scenarios and unit tests.

nodes: `n3: {gpus: [RTX 3060 12GB, RTX 3090 24GB lost], cpu: 16, memory: 64, ready: false}`; cpu in cores, memory in GiB.
After a GPU's size may stand: lost, unknown, away, whole (cannot be shared), cc8.6, enc3, out4 (GiB used outside).
A GPU is called `n3/0`: its place in that list. held: `n3/0 by vllm`, `n3/0 6GB by a until 12:30`, `… expected 12:30`,
`… job` (no end known), `… ending` (being released), `… foreign`. queue: `{big: 2x24GB}` or with options.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from podwarden.domain.inventory import (
    DEVICE_SHARES,
    Capabilities,
    Device,
    DeviceHealth,
    Holder,
    Holding,
    Node,
)
from podwarden.domain.placement import Claimant, ForeignDemand, Reserved, Snapshot
from podwarden.domain.request import Request, Sharing
from podwarden.domain.units import parse_duration, parse_vram, promisable

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
PRIORITIES = {"critical": 1000, "high": 750, "normal": 500, "low": 250, "idle": 0}


def at(text: str) -> datetime:
    hour, minute = text.split(":")
    return NOW.replace(hour=int(hour), minute=int(minute))


def uuid(name: str) -> str:
    node, _, index = name.partition("/")
    return f"gpu-{node}-{index}"


def gpu_name(identity: str) -> str:
    _, node, index = identity.split("-")
    return f"{node}/{index}"


def device(node: str, index: int, text: str) -> Device:
    match = re.fullmatch(r"(.*?) (\d+(?:\.\d+)?)(GB|MiB)((?: \w+(?:\.\d+)?)*)", text)
    assert match, text
    vram = parse_vram(match[2]) if match[3] == "GB" else int(match[2])
    words = match[4].split()
    outside = next((round(float(w[3:]) * 1024) for w in words if re.fullmatch(r"out[\d.]+", w)), 0)
    health = DeviceHealth.LOST if "lost" in words else DeviceHealth.OK
    return Device(
        node=node,
        index=index,
        uuid=f"gpu-{node}-{index}",
        model=match[1],
        vram_mib=vram,
        memory_mib=promisable(vram, outside),
        health=DeviceHealth.UNKNOWN if "unknown" in words else health,
        present="away" not in words,
        whole_only="whole" in words,
        compute_capability=next((w[2:] for w in words if re.fullmatch(r"cc\d+\.\d+", w)), ""),
        encoders=next((int(w[3:]) for w in words if re.fullmatch(r"enc\d+", w)), None),
        pci_bus_id=f"0000:{index + 1:02}:00.0",
        outside_mib=outside,
    )


def node(name: str, options: dict | None = None) -> Node:
    o = dict(options or {})
    gpus = tuple(device(name, i, text) for i, text in enumerate(o.pop("gpus", ())))
    made = Node(
        name=name,
        cpu_milli=round(o.pop("cpu", 16) * 1000),
        memory_mib=round(o.pop("memory", 64) * 1024),
        pods=o.pop("pods", 110),
        used_cpu_milli=round(o.pop("used_cpu", 0) * 1000),
        used_memory_mib=round(o.pop("used_memory", 0) * 1024),
        used_pods=o.pop("used_pods", 0),
        ready=o.pop("ready", True),
        cordoned=o.pop("cordoned", False),
        agent_away=o.pop("agent_away", False),
        taints=tuple(o.pop("taints", ())),
        devices=tuple(sorted(gpus, key=lambda d: (d.vram_mib, d.uuid))),
    )
    assert not o, o
    return made


_HELD = re.compile(
    r"(\S+/\d+)(?: (\d+(?:\.\d+)?GB))? by (\S+)(?: (?:(until|expected) (\d+:\d+)|(job)|(ending)|(foreign)))*"
)


def holding(text: str) -> Holding:
    match = _HELD.fullmatch(text)
    assert match, text
    where, size, name, how, when, job, ending, foreign = match.groups()
    return Holding(
        device=uuid(where),
        node=where.partition("/")[0],
        memory_mib=parse_vram(size) if size else 0,
        shares=1 if size else DEVICE_SHARES,
        holder=Holder(
            name=name,
            workload="" if foreign else f"w-{name}",
            namespace="other" if foreign else "podwarden",
            instance=name,
            endless=not (how or job),
            ends_by=at(when) if when else None,
            expected_end=how == "expected",
            terminating=bool(ending),
        ),
    )


def request(text: str) -> Request | None:
    if text in ("", "none"):
        return None
    count, words = 1, text.split()
    first = words[0]
    if match := re.fullmatch(r"(\d+)x(.+)", first):
        count, first = int(match[1]), match[2]
    options = dict(w.split("=", 1) for w in words[1:] if "=" in w)
    return Request(
        count=count,
        vram_mib=None if first == "any" else parse_vram(first),
        sharing=Sharing.SHARED if "shared" in words else Sharing.DEDICATED,
        model=tuple(m.replace("_", " ") for m in options.get("model", "").split("|") if m),
        compute=options.get("compute", ""),
        encoder_sessions=int(options.get("enc", "0")),
    )


def claimant(name: str, options: dict | str | None = None, number: int = 0) -> Claimant:
    o = {"gpu": options} if isinstance(options, str) else dict(options or {})
    limit, expected = o.pop("limit", None), o.pop("expected", None)
    nodes = o.pop("nodes", None)
    slots = o.pop("slots", 1)
    made = Claimant(
        workload=f"w-{name}",
        name=name,
        endless=o.pop("service", limit is None and expected is None),
        priority=PRIORITIES[o.pop("priority", "normal")],
        queued_at=NOW - timedelta(hours=1) + timedelta(seconds=o.pop("age", number)),
        request=request(o.pop("gpu", "")),
        cpu_milli=round(o.pop("cpu", 1) * 1000),
        memory_mib=round(o.pop("memory", 1) * 1024),
        slots=slots,
        at_least=o.pop("at_least", slots),
        time_limit=timedelta(seconds=parse_duration(limit)) if limit else None,
        expected=timedelta(seconds=parse_duration(expected)) if expected else None,
        nodes=None if nodes is None else frozenset(nodes),
        nodes_why=o.pop("why", ""),
        avoid=tuple(o.pop("avoid", ())),
        hours=o.pop("hours", ""),
        open_hours=o.pop("open", True),
        started=o.pop("started", False),
        displaced=o.pop("displaced", False),
        quota=o.pop("quota", ""),
    )
    assert not o, o
    return made


def reserved(text: str) -> Reserved:
    """`n1/0 by a until 12:30` or `n1 by a` (no GPU; 1 core, 1 GiB)."""
    match = re.fullmatch(r"(\S+) by (\S+)(?: until (\S+))?", text)
    assert match, text
    where, name, when = match.groups()
    place, _, index = where.partition("/")
    return Reserved(
        workload=f"w-{name}",
        name=name,
        node=place,
        devices=(uuid(where),) if index else (),
        cpu_milli=1000,
        instance_memory_mib=1024,
        endless=when is None,
        ends_by=at(when) if when else None,
    )


def foreign(text: str) -> ForeignDemand:
    """`chart 2` or `chart 1 on n1`."""
    name, count, *rest = text.split()
    return ForeignDemand("other", name, int(count), frozenset(rest[1:]) if rest else None)


def capabilities(options: dict) -> Capabilities:
    return Capabilities(**{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})


def snapshot(case: dict) -> Snapshot:
    queue = case.get("queue", ())
    entries = [next(iter(e.items())) if isinstance(e, dict) else (e, None) for e in queue]
    return Snapshot(
        cluster="home",
        taken_at=NOW,
        nodes=tuple(node(name, options) for name, options in case.get("nodes", {}).items()),
        holdings=tuple(holding(text) for text in case.get("held", ())),
        reserved=tuple(reserved(text) for text in case.get("reserved", ())),
        claimants=tuple(claimant(n, o, i) for i, (n, o) in enumerate(entries)),
        foreign=tuple(foreign(text) for text in case.get("foreign", ())),
        capabilities=capabilities(case.get("cluster", {})),
        complete=case.get("complete", True),
        reachable=case.get("reachable", True),
        mix=tuple(tuple(m) for m in case.get("mix", ())),
        holds=tuple((uuid(g), f"w-{n}") for g, n in case.get("held_for", {}).items()),
    )
