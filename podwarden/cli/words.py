"""Sentences about workloads, from the API's JSON."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from podwarden.domain.units import parse_vram, show_duration, show_gb

Shape = dict[str, Any]


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st, 112th."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def count(number: int, one: str, many: str = "") -> str:
    """`1 node`, `3 nodes`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def asked(spec: Shape) -> str:
    """What the GPU part asks for: `8 GB asked`, `6 GB asked, shared`; "" where no size was named."""
    gpu = spec.get("gpu") or {}
    size = gpu.get("vram")
    if not size:
        return ""
    try:
        text = show_gb(parse_vram(size))
    except ValueError:
        text = str(size)
    each = " each" if (gpu.get("count") or 1) > 1 else ""
    return f"{text}{each} asked" + (", shared" if gpu.get("sharing") == "shared" else "")


def request(spec: Shape) -> str:
    """The whole request: `1 GPU, 20 GB`, `2 GPUs`, `6 GB of a GPU`, `no GPU`."""
    gpu = spec.get("gpu")
    if not gpu:
        return "no GPU"
    number = gpu.get("count") or 1
    size = ""
    if gpu.get("vram"):
        size = asked(spec).partition(" asked")[0]
    if gpu.get("sharing") == "shared":
        return f"{size} of a GPU" if size else "part of a GPU"
    return count(number, "GPU") + (f", {size}" if size else "")


def place(nodes: list[str], devices: list[Shape], spec: Shape) -> str:
    """`n5, GTX 1070 (8 GB asked)`, `n4, 2 x RTX A4000 (16 GB each asked)`, `n2`."""
    by_node: dict[str, Counter[str]] = {node: Counter() for node in nodes}
    for device in devices:
        by_node.setdefault(device["node"], Counter())[device["model"] or device["uuid"]] += 1
    parts = []
    for node, models in by_node.items():
        named = [
            f"{number} \N{MULTIPLICATION SIGN} {model}" if number > 1 else model
            for model, number in models.items()
        ]
        parts.append(", ".join([node, *named]))
    size = asked(spec)
    return "; ".join(parts) + (f" ({size})" if size and devices else "")


def reason(shape: Shape | None) -> str:
    if not shape:
        return ""
    return f"{shape['code']}: {shape['text']}" + (f" {shape['remedy']}" if shape["remedy"] else "")


def progress(workload: Shape) -> str:
    """How far an array is: `12 of 40 done`; "" for everything else."""
    counts = workload["counts"]
    total = counts.get("total", 0)
    if total < 2:
        return ""
    failed = counts.get("failed", 0)
    return f"{counts.get('done', 0)} of {total} done" + (f", {failed} failed" if failed else "")


def line_with_urls(workload: Shape, took: float | None = None) -> str:
    """The one line, and where it can be reached: `web: running on n3, 12 s   http://192.168.1.33:8080`."""
    urls = workload["urls"] if workload["state"] in ("running", "unhealthy", "updating") else []
    return "   ".join([line(workload, took), *urls])


def line(workload: Shape, took: float | None = None) -> str:
    """The one line about a workload. took: seconds since it was asked for."""
    state = workload["state"]
    time = f", {show_duration(took)}" if took is not None else ""
    if state == "queued":
        return f"{workload['name']}: {_queued(workload)}"
    where = _where(workload)
    far = progress(workload)
    text = f"{workload['name']}: {state}"
    if state in ("running", "starting", "updating", "unhealthy") and where:
        text += f" on {where}"
    if far:
        text += f", {far}"
    if state in ("running", "succeeded", "stopped"):
        return text + time
    if state == "starting" and (workload["reason"] or {}).get("code") == "STARTING" and where:
        return text + time  # the reason would only say the same again
    why = reason(workload["reason"])
    return f"{text}. {why}" if why else text + time


def _where(workload: Shape) -> str:
    """Where it is, or is meant to be."""
    nodes, devices = workload["nodes"], workload["devices"]
    if not nodes and workload["placement"]:
        devices = workload["placement"]["devices"]
        nodes = [slot["node"] for slot in workload["placement"]["slots"]]
    return place(list(dict.fromkeys(nodes)), devices, workload["spec"])


def _queued(workload: Shape) -> str:
    position = workload["position"]
    text = f"queued, {ordinal(position)} in line" if position else "queued"
    why = reason(workload["reason"])
    text += f". {why}" if why else ""
    if workload["starts_at"]:
        text += f" Starts about {clock(workload['starts_at'])}."
    return text


def preview(shape: Shape) -> str:
    """What would happen: never in a tense that says it did."""
    if shape["refused"]:
        return f"{shape['name']}: would be refused: {reason(shape['reason'])}"
    if shape["starts_now"]:
        placement = shape["placement"]
        nodes = list(dict.fromkeys(slot["node"] for slot in placement["slots"]))
        return f"{shape['name']}: would start now on {place(nodes, placement['devices'], shape['spec'])}"
    text = f"{shape['name']}: would wait"
    if shape["position"]:
        text += f", {ordinal(shape['position'])} in line"
    why = reason(shape["reason"])
    text += f". {why}" if why else ""
    if shape["starts_at"]:
        text += f" It would start about {clock(shape['starts_at'])}."
    return text


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def clock(text: str) -> str:
    """Local time; with the date when it is another day."""
    at = moment(text).astimezone()
    same = at.date() == datetime.now(UTC).astimezone().date()
    return at.strftime("%H:%M:%S" if same else "%Y-%m-%d %H:%M")


def since(text: str | None, now: datetime | None = None) -> str:
    """How long ago: `42 s`, `2 h 5 min`; a dash where it never was."""
    if not text:
        return "—"
    seconds = ((now or datetime.now(UTC)) - moment(text)).total_seconds()
    return show_duration(max(seconds, 0.0)) if seconds >= 10 else f"{max(seconds, 0):.0f} s"
