"""The oracle's judgement of what PodWarden shows: the queue with its reasons, notes and places in line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from oracle import (
    ALL_SHARES,
    Gpu,
    Json,
    World,
    could_ever_on,
    could_start,
    fits_on,
    gpu_fits,
    gpus_wanted,
    need,
    one_at_a_time,
    suits,
)

HELD = {"DEVICES_IN_USE", "WAITS_FOR_SERVICE"}
_LESS = re.compile(r"ask for (\d+) GB to start now on ([a-z0-9-]+)\.", re.IGNORECASE)
_STOP = re.compile(r"^Stop (.+?)(?: to start now\.|, or )")


@dataclass(frozen=True)
class Finding:
    """A statement that the cluster's objects contradict. about: whose statement and which one, stable from look to
    look. rooms: the nodes it rests on; it counts only once it outlived a while in which they did not change.
    """

    about: tuple[str, ...]
    text: str
    rooms: tuple[str, ...] = ()


def untrue(now: World, queue: list[Json], names: set[str] | None = None) -> list[Finding]:
    """queue: entries of PodWarden's queue in order, each with name, position, spec, reason. names: all workloads."""
    found = [Finding(("books", text), text) for text in now.broken]
    known = names if names is not None else {entry["name"] for entry in queue}
    ahead: list[Json] = []
    places: dict[int, str] = {}
    for entry in queue:
        name, reason, place = entry["name"], entry.get("reason"), entry["position"]
        if place is not None and place in places:
            found.append(
                Finding((name, "place"), f"{name} and {places[place]} share place {place}")
            )
        places[place] = name
        if reason is None:
            found.append(Finding((name, "mute"), f"{name} waits without a reason"))
            continue
        for finding in _judge(now, entry, reason, ahead, known):
            text = f"{name}: {finding.text} [{reason['code']}: {reason['text']} {reason['remedy']}]"
            found.append(
                Finding((entry["id"], reason["code"], *finding.about), text, finding.rooms)
            )
        ahead.append(entry)
    return found


def idle_for_head(now: World, queue: list[Json]) -> Finding | None:
    """The head of the queue could start on free capacity this moment."""
    if not queue or queue[0]["position"] != 1 or not one_at_a_time(queue[0]["spec"]):
        return None
    where = could_start(now, queue[0]["spec"])
    if not where:
        return None
    reason = queue[0].get("reason") or {}
    text = f"{queue[0]['name']} is first and fits on {', '.join(where)} ({reason.get('code')}: {reason.get('text')})"
    return Finding((queue[0]["id"], "idle", *where), text)


def _judge(
    now: World, entry: Json, reason: Json, ahead: list[Json], names: set[str]
) -> Iterator[Finding]:
    code, spec = reason["code"], entry["spec"]
    every = tuple(sorted(now.rooms))
    if code in HELD | {"CPU_OR_MEMORY_SHORT"} and one_at_a_time(spec):
        for name in could_start(now, spec):
            yield Finding(("fits", name), f"says it cannot start, yet it fits on {name}", (name,))
    if code in HELD and not _held_ones(now, spec):
        yield Finding(("held",), "no GPU that suits it is held by anybody", every)
    if code == "WAITS_FOR_SERVICE" and not any(g.endless for g in _held_ones(now, spec)):
        yield Finding(("endless",), "nothing without an end holds a GPU that suits it", every)
    if code == "CPU_OR_MEMORY_SHORT":
        yield from _not_short(now, spec)
    if code == "WAITS_BEHIND":
        yield from _not_behind(now, entry, reason, ahead, names)
    if code == "NODE_NOT_READY" and all(room.usable for room in now.rooms.values()):
        yield Finding(("ready",), "every node is ready", every)
    for name in reason.get("ahead", []):
        if name not in names or name == entry["name"]:
            yield Finding(("ahead", name), f"names {name} as ahead, which does not exist")
    yield from _wrong_notes(now, spec, reason)
    yield from _wrong_remedy(now, spec, reason)


def _held_ones(now: World, spec: Json) -> list[Gpu]:
    if not spec.get("gpu"):
        return []
    return [g for g in now.gpus.values() if g.used_shares and suits(g, spec["gpu"])]


def _not_short(now: World, spec: Json) -> Iterator[Finding]:
    cpu, memory = need(spec)
    for room in now.rooms.values():
        gpus = gpus_wanted(spec)
        free = sum(gpu_fits(g, spec["gpu"]) for g in room.gpus) if gpus else 0
        if not could_ever_on(room, spec) or (gpus and free - now.owed.gpus < gpus):
            continue
        spare = room.cpu - now.owed.cpu >= cpu and room.memory - now.owed.memory >= memory
        if room.usable and spare and room.pods - now.owed.pods >= 1 and one_at_a_time(spec):
            yield Finding(
                ("enough", room.name), f"{room.name} has CPU and memory enough", (room.name,)
            )


def _not_behind(
    now: World, entry: Json, reason: Json, ahead: list[Json], names: set[str]
) -> Iterator[Finding]:
    """It starts on a node that nobody ahead could ever use."""
    spec = entry["spec"]
    text = reason["text"]
    if not any(name in text for name in names - {entry["name"]}):
        yield Finding(("whom",), "does not say behind whom")
    if not one_at_a_time(spec) or not gpus_wanted(spec) or _unseen(entry, ahead):
        return
    for room in now.rooms.values():
        if fits_on(room, spec, now.owed) and not any(
            could_ever_on(room, other["spec"]) for other in ahead
        ):
            yield Finding(
                ("behind", room.name),
                f"nobody ahead can use {room.name}, where it fits",
                (room.name,),
            )


def _unseen(entry: Json, ahead: list[Json]) -> bool:
    """Somebody is ahead who is not in the list: an array that wants more tasks, a service that lost its node."""
    return entry["position"] is None or entry["position"] != len(ahead) + 1


def _wrong_notes(now: World, spec: Json, reason: Json) -> Iterator[Finding]:
    for note in reason.get("notes", []):
        room, gpu = now.rooms.get(note["node"]), now.gpus.get(note["device"])
        about = ("note", note["node"], note["device"], note["text"])
        if room is None:
            continue
        if note["code"] == "NODE_NOT_READY" and room.usable:
            yield Finding(about, f"says {note['node']} is not ready", (note["node"],))
        if gpu is None:
            continue
        wrong = _wrong_note(spec, gpu, note, now.owed.names)
        if wrong:
            yield Finding(about, f"{wrong} ({note['text']})", (gpu.node,))


def _wrong_note(spec: Json, gpu: Gpu, note: Json, owed: set[str]) -> str:
    """What is wrong about one GPU's note; "" when it is true. owed: who is about to get GPUs."""
    code, text, name = note["code"], note["text"], f"{gpu.node} {gpu.model}"
    fits = gpu_fits(gpu, spec["gpu"])
    promised = any(name in text for name in owed)
    named = promised or not gpu.holders or any(holder in text for holder in gpu.holders)
    free = code in HELD and " is free" in text
    held = code in HELD and not free
    faults = {
        f"says {gpu.uuid} is on {note['node']}, it is on {gpu.node}": gpu.node != note["node"],
        f"says {name} is free, it is held": free and not fits,
        f"says {name} is held, nobody holds it": held and not (gpu.used_shares or promised),
        f"names others than {', '.join(sorted(gpu.holders))} as holders of {name}": held
        and not named,
        f"says {name} is too small": code == "NO_DEVICE_LARGE_ENOUGH" and suits(gpu, spec["gpu"]),
        f"says {name} has no CPU or memory beside it, it is held": code == "CPU_OR_MEMORY_SHORT"
        and gpu.used_shares >= ALL_SHARES,
        f"says {name} is unhealthy": code == "DEVICE_UNHEALTHY" and not gpu.tainted,
    }
    return next((fault for fault, true in faults.items() if true), "")


def _wrong_remedy(now: World, spec: Json, reason: Json) -> Iterator[Finding]:
    remedy = reason.get("remedy", "")
    less = _LESS.search(remedy)
    if less and less[2] in now.rooms:
        smaller = {**spec, "gpu": {**spec["gpu"], "vram": f"{less[1]}GB"}}
        room = now.rooms[less[2]]
        free = sum(gpu_fits(g, smaller["gpu"]) for g in room.gpus)
        if not room.usable or free < gpus_wanted(spec):
            yield Finding(("less", *less.groups()), "its advice would not help", (less[2],))
    stop = _STOP.search(remedy)
    if stop:
        holders = {holder for gpu in now.gpus.values() for holder in gpu.endless} | now.owed.names
        for name in re.split(r", | and ", stop[1]):
            if name not in holders and not name.endswith(" more"):
                yield Finding(
                    ("stop", name), f"advises to stop {name}, which holds nothing", tuple(now.rooms)
                )
