"""What pages say about workloads, in whole sentences with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from podwarden.domain.inventory import Device
from podwarden.domain.placement import Placement, Verdict
from podwarden.domain.reason import Reason
from podwarden.domain.units import show_cpu, show_duration, show_gb, show_gib
from podwarden.domain.workload import Kind, Spec, State, Workload
from podwarden.web.pages.page import age

ICONS = {
    State.QUEUED: ("wait", "queued"),
    State.STARTING: ("go", "starting"),
    State.RUNNING: ("ok", "running"),
    State.UNHEALTHY: ("warn", "unhealthy"),
    State.UPDATING: ("go", "updating"),
    State.STOPPING: ("", "stopping"),
    State.STOPPED: ("", "stopped"),
    State.SUCCEEDED: ("ok", "succeeded"),
    State.FAILED: ("bad", "failed"),
}


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st, 112th."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def count(number: int, one: str, many: str = "") -> str:
    """`1 node`, `3 nodes`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def asks(spec: Spec) -> str:
    """`1 whole GPU, 16 GB`, `6 GB of a shared GPU`, `2 whole GPUs`, `no GPU`."""
    gpu = spec.gpu
    if gpu is None:
        return "no GPU"
    size = show_gb(gpu.vram_mib) if gpu.vram_mib is not None else ""
    if gpu.shared:
        one = f"{size} of a shared GPU" if size else "part of a shared GPU"
        return one if gpu.count == 1 else f"{size} of each of {gpu.count} shared GPUs"
    text = count(gpu.count, "whole GPU")
    text += f", {size}{' each' if gpu.count > 1 else ''}" if size else ""
    return text + (f", {' or '.join(gpu.model)}" if gpu.model else "")


def cores(milli: int) -> str:
    """`1 core`, `0.5 cores`, `16 cores`."""
    return "1 core" if milli == 1000 else f"{show_cpu(milli)} cores"


def size(mib: int) -> str:
    """Asked or built-in memory: `64 GiB`, `1.5 GiB`."""
    return show_gib(mib).replace(".0\N{SPACE}GiB", " GiB")


def kind_of(spec: Spec) -> str:
    if spec.kind is Kind.SERVICE:
        return "service" if spec.replicas == 1 else f"service, {spec.replicas} copies"
    job = spec.job
    if job is None or job.array is None:
        limit = job.time_limit_s if job else None
        return "job" + (f", up to {show_duration(limit)}" if limit else "")
    return f"array job {job.array[0]} to {job.array[1]}"


def gpu_name(uuid: str, known: Mapping[str, Device]) -> str:
    """`n3 GPU 1 (RTX 3090)`."""
    device = known.get(uuid)
    if device is None:
        return "a GPU that is not listed any more"
    return f"{device.node} GPU\N{NO-BREAK SPACE}{device.index} ({device.model})"


def place(
    nodes: tuple[str, ...], devices: tuple[str, ...], known: Mapping[str, Device], most: int = 3
) -> str:
    """`n3 GPU 1 (RTX 3090)`; `n2`; `n3 GPU 0 (RTX 3060) and 5 more`."""
    named = [gpu_name(uuid, known) for uuid in dict.fromkeys(devices)]
    if not named:
        named = [
            f"{node} ({number} copies)" if number > 1 else node
            for node, number in Counter(nodes).items()
        ]
    if len(named) <= most:
        return (
            " and ".join([", ".join(named[:-1]), named[-1]])
            if len(named) > 2
            else " and ".join(named)
        )
    return f"{', '.join(named[: most - 1])} and {len(named) - most + 1} more"


def planned(placement: Placement, known: Mapping[str, Device]) -> str:
    nodes = tuple(slot.node for slot in placement.slots)
    return place(nodes, tuple(d for slot in placement.slots for d in slot.devices), known)


def where(row: Workload, known: Mapping[str, Device]) -> str:
    """Where it is, or is meant to be; "" where neither is known."""
    if row.state in (State.STOPPED, State.SUCCEEDED, State.FAILED, State.QUEUED):
        return ""
    if row.nodes or row.devices:
        return place(row.nodes, row.devices, known)
    return planned(row.placement, known) if row.placement is not None else ""


def progress(row: Workload) -> str:
    total = row.count("total")
    if total < 2:
        return ""
    failed = row.count("failed")
    text = f"{row.count('done'):,} of {total:,} done"
    running = row.count("running")
    text += f", {running:,} running" if running else ""
    return text + (f", {failed:,} failed" if failed else "")


def reason_of(row: Workload, verdict: Verdict | None) -> Reason | None:
    """While it waits, the last plan's word is fresher than the row's."""
    if row.state is State.QUEUED and verdict is not None and verdict.reason is not None:
        return verdict.reason
    return row.reason


def lead(row: Workload, known: Mapping[str, Device], verdict: Verdict | None) -> str:
    """The first sentence of a workload's page: where and how it is, in numbers."""
    if row.state is State.QUEUED:
        return _waits(row, verdict)
    at = where(row, known)
    on = f" on {at}" if at else ""
    far = progress(row)
    parts = {
        State.STARTING: f"Starts{on}.",
        State.RUNNING: f"Runs{on}{_for(row.started_at)}.",
        State.UNHEALTHY: f"Runs{on}, but is not well.",
        State.UPDATING: f"Is being updated{on}.",
        State.STOPPING: f"Is ending{on}; its GPUs are free once it has ended.",
        State.STOPPED: f"Was stopped{_before(row.ended_at)} and holds nothing.",
        State.SUCCEEDED: f"Finished{_before(row.ended_at)}{_took(row)} and holds nothing.",
        State.FAILED: f"Failed{_before(row.ended_at)} and holds nothing.",
    }
    text = parts[row.state]
    if far:
        text = f"{far[0].upper()}{far[1:]}. {text}"
    if row.state in (State.RUNNING, State.STARTING, State.UNHEALTHY):
        text += f" It asked for {asks(row.spec)}."
    return text


def _waits(row: Workload, verdict: Verdict | None) -> str:
    if verdict is None:
        return f"Waits for its first place in line. It asks for {asks(row.spec)}."
    position = f", {ordinal(verdict.position)} in line" if verdict.position else ""
    since = f" for {age(row.queued_at)}" if row.queued_at else ""
    return f"Waits{since}{position}. It asks for {asks(row.spec)}."


def _for(at: datetime | None) -> str:
    return f" for {age(at)}" if at is not None else ""


def _before(at: datetime | None) -> str:
    return f" {age(at)} ago" if at is not None else ""


def _took(row: Workload) -> str:
    if row.started_at is None or row.ended_at is None:
        return ""
    return f" after {show_duration((row.ended_at - row.started_at).total_seconds())}"


def facts(row: Workload) -> tuple[tuple[str, str], ...]:
    """What it asked for, as rows of a list."""
    spec = row.spec
    rows = [
        ("GPU", asks(spec)),
        ("CPU, memory", f"{cores(spec.cpu_milli)}, {size(spec.memory_mib)}"),
        ("Image", spec.image),
        ("Copies", str(spec.replicas) if spec.replicas > 1 else ""),
        ("Command", _short(" ".join((*spec.command, *spec.args)))),
        ("Ports", ", ".join(f"{p.port} {'local network' if p.expose == 'lan' else 'inside the cluster'}" for p in spec.ports)),
        ("Volumes", ", ".join(f"{v.name}, {v.kind}{f', {size(v.size_mib)}' if v.size_mib else ''}" for v in spec.volumes)),
        ("Secrets", ", ".join(name for _, name in spec.secrets)),
        ("Health", _health(spec)),
        ("Hours", spec.hours),
        ("Node", spec.node),
        ("Template", spec.template),
        ("Cluster", row.cluster),
    ]  # fmt: skip
    return tuple((name, value) for name, value in rows if value)


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _health(spec: Spec) -> str:
    health = spec.health
    if health is None:
        return ""
    what = health.http_path or (" ".join(health.command) if health.command else "")
    what = what or f"port {health.port}"
    return f"{what} every {health.period_s} s, {show_duration(health.startup_s)} to start"


def now() -> datetime:
    return datetime.now(UTC)
