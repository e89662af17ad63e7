"""From the cluster's own words about one instance to a reason code and a sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from podwarden.control import signs
from podwarden.domain.observation import Instance, LastWords
from podwarden.domain.reason import Code, Reason
from podwarden.domain.units import show_duration, show_gib
from podwarden.domain.workload import State, Workload

NOTHING = LastWords()
_CHECK = re.compile(
    r"(Startup|Readiness|Liveness) probe (?:failed|errored)[^:]{0,60}: (.*)", re.DOTALL
)
_STATUS = re.compile(r"HTTP probe failed with statuscode: (\d+)")
_OF_NODES = re.compile(r"0/(\d+) nodes are available")
_FULL_NODES = re.compile(
    r"(\d+) node\(s\) had untolerated taint(?:\(s\))? \{node\.kubernetes\.io/disk-pressure"
)
_PULLS = frozenset({"Pulling", "ContainerCreating", "PodInitializing"})
_PULL_ERRORS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "RegistryUnavailable",
        "ImageInspectError",
    }
)
_BROKEN_STARTS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "FailedMount",
        "FailedAttachVolume",
        "FailedCreatePodSandBox",
        "FailedPrepareDynamicResources",
    }
)


def of_waiting(
    instance: Instance, row: Workload, lost_nodes: Collection[str], said: LastWords = NOTHING
) -> Reason | None:
    """Why an instance that has not ended is not ready; None when it says nothing (or is ready)."""
    node = instance.node
    if node and node in lost_nodes:
        return _lost(instance, row)
    if instance.ready or instance.terminating:
        return None
    crashed = instance.restarts or instance.reason in ("CrashLoopBackOff", "Error", "OOMKilled")
    if instance.phase == "pending" and not crashed:
        return _pending(instance, row)
    return _crashing(instance, row, said) if crashed else _not_ready(instance, row, said)


def _crashing(instance: Instance, row: Workload, said: LastWords) -> Reason:
    """It was started, and ended again."""
    node = instance.node
    if instance.reason == "OOMKilled":
        return replace(_out_of_memory(row), lines=said.lines)
    again = _restarts(instance.restarts)
    if _ended_by_check(said):
        seconds = row.spec.health.startup_s if row.spec.health is not None else 0
        check = _check_words(said)[1]
        within = f" within {show_duration(seconds)}" if seconds else ""
        return Reason(
            Code.PROBE_FAILING,
            f"On {node} its health check did not pass{within}{check}; {again}.",
            "Check the path and port of health, or give it more time with health.startup.",
            lines=said.lines,
        )
    text = f"On {node} its program ended{_with_exit(instance)}; {again}."
    return _told(Code.CRASH_LOOPING, text, "Its logs say why.", said, row)


def _not_ready(instance: Instance, row: Workload, said: LastWords) -> Reason:
    """It runs, and does not serve."""
    node = instance.node
    kind, check = _check_words(said)
    served = row.state in (State.RUNNING, State.UNHEALTHY)
    if served and (kind in ("readiness", "liveness") or instance.reason == "Unhealthy"):
        words = check or (f": {_short(instance.message)}" if instance.message else "")
        remedy = "Check the path and port of health, and its log."
        return Reason(
            Code.PROBE_FAILING,
            f"On {node} its health check fails{words}.",
            remedy,
            lines=said.lines,
        )
    return Reason(Code.STARTING, f"It runs on {node}; its health check has not passed yet{check}.")


def gave_up(
    row: Workload, live: Sequence[Instance], crashes: int, words: Mapping[str, LastWords]
) -> Reason:
    """The final word on a service that was taken down."""
    last = next((i for i in live if i.uid in words), None) or next(
        (i for i in live if i.exit_code is not None), None
    )
    said = words.get(last.uid, NOTHING) if last is not None else NOTHING
    code = f", the last time{_with_exit(last)}" if last and last.exit_code is not None else ""
    text = (
        f"It ended by itself {crashes} times in 30 min{code}. "
        "It was taken down, so that its GPUs are free."
    )
    remedy = "Look at its logs, change what is wrong and start it again."
    if last is not None and last.reason == "OOMKilled":
        memory = _out_of_memory(row)
        return Reason(memory.code, f"{memory.text} {text}", memory.remedy, lines=said.lines)
    return _told(Code.CRASH_LOOPING, text, remedy, said, row)


def again(
    row: Workload, failed: Sequence[Instance], words: Mapping[str, LastWords]
) -> Reason | None:
    """Between two attempts of a job; None before the first has failed."""
    last = _last(failed)
    if last is None:
        return None
    if not last.user_failure and (why := _taken(last)) is not None:
        return why
    retries = row.spec.job.retries if row.spec.job is not None else 0
    tries = f"attempt {len(failed) + 1}, at most {retries + 1} that fail by themselves"
    text = f"The last attempt ended{_with_exit(last)}. It is started again: {tries}."
    said = words.get(last.uid, NOTHING)
    return replace(_told(Code.STARTING, text, "", said, row), code=Code.STARTING)


def of_failed(
    row: Workload,
    failed: Sequence[Instance],
    why: str,
    spent: Collection[int],
    words: Mapping[str, LastWords] = MappingProxyType({}),
) -> Reason:
    """The final word on a job. why: the cluster's; spent: tasks of an array that failed for good."""
    last = _last(failed)
    said = words.get(last.uid, NOTHING) if last is not None else NOTHING
    if spent:
        tasks = ", ".join(str(index) for index in sorted(_values(row, spent))[:8])
        more = f" and {len(spent) - 8} more" if len(spent) > 8 else ""
        total = row.spec.job.tasks if row.spec.job is not None else len(spent)
        text = f"{len(spent)} of {total} tasks failed: {tasks}{more}.{_exit(last)}"
        return _told(Code.PROGRAM_FAILED, text, "", said, row)
    if why.startswith("DeadlineExceeded") or (
        last is not None and last.reason == "DeadlineExceeded"
    ):
        limit = row.spec.job.time_limit_s if row.spec.job is not None else None
        limited = f" of {show_duration(limit)}" if limit else ""
        return Reason(
            Code.TIME_LIMIT,
            f"It ran longer than its time limit{limited} and was ended.",
            lines=said.lines,
        )
    if last is not None and last.reason == "OOMKilled":
        return replace(_out_of_memory(row), lines=said.lines)
    if last is not None:
        tries = f" {_times(len(failed))}" if len(failed) > 1 else ""
        text = f"Its program failed{tries}.{_exit(last)}"
        return _told(Code.PROGRAM_FAILED, text, "", said, row)
    return Reason(Code.PROGRAM_FAILED, f"The cluster ended it: {_short(why)}")


def _values(row: Workload, indexes: Collection[int]) -> list[int]:
    first = row.spec.job.array[0] if row.spec.job is not None and row.spec.job.array else 0
    return [first + index for index in indexes]


def _pending(instance: Instance, row: Workload) -> Reason | None:
    node = instance.node
    if instance.reason == "Unschedulable":
        return _unplaced(instance)
    if instance.reason in _PULL_ERRORS or (
        instance.reason in ("BackOff", "Failed") and "image" in instance.message.lower()
    ):
        return _not_pulled(instance, row)
    if instance.reason in _BROKEN_STARTS:
        return _broken_start(instance)
    if node and instance.reason in _PULLS:
        return Reason(Code.PULLING_IMAGE, f"{node} fetches the image {row.spec.image}.")
    return Reason(Code.STARTING, f"It is being started on {node}.") if node else None


def _unplaced(instance: Instance) -> Reason:
    if not _all_full(instance.message):
        said = _short(instance.message)
        return Reason(Code.UNSCHEDULABLE, f"The cluster finds no room for it: {said}")
    return Reason(
        Code.DISK_PRESSURE,
        "The disk of every node that would do is nearly full.",
        "Free room there: images and cached models are what usually fills a disk.",
    )


def _broken_start(instance: Instance) -> Reason:
    full = signs.of_pull(instance.message)
    if full is not None and full.code is Code.DISK_PRESSURE:
        return Reason(full.code, f"{instance.node} cannot start it: {full.text}.", full.remedy)
    said = _short(instance.message)
    return Reason(Code.STARTING, f"{instance.node} cannot start it yet: {said}")


def _not_pulled(instance: Instance, row: Workload) -> Reason:
    said = _short(instance.message) or instance.reason
    sign = signs.of_pull(f"{instance.reason} {instance.message}")
    what = f"{instance.node} cannot fetch the image {row.spec.image}"
    if sign is None:
        remedy = "Check the image's name, and whether it needs image_pull_secret."
        return Reason(Code.IMAGE_PULL_FAILED, f"{what}: {said}", remedy)
    return Reason(sign.code, f"{what}: {sign.text} ({said}).", sign.remedy)


def _all_full(message: str) -> bool:
    """The cluster's scheduler has nothing else to say of any node."""
    total, full = _OF_NODES.match(message), _FULL_NODES.search(message)
    return bool(total and full and total[1] == full[1])


def _taken(instance: Instance) -> Reason | None:
    """A node that ran short took it away; None where it was something else."""
    sign = signs.of_node(instance.message)
    if sign is None:
        return None
    text = f"{instance.node} ended it, since {sign.text}. It is started again."
    return Reason(sign.code, text, sign.remedy)


def _told(code: Code, text: str, remedy: str, said: LastWords, row: Workload) -> Reason:
    """With what the last lines of its log mean, and with these lines."""
    sign = signs.of_log(said.lines)
    if sign is None:
        return Reason(code, text, remedy, lines=said.lines)
    cure = sign.remedy
    if sign.code is Code.NO_GPU_VISIBLE and row.spec.gpu is None:
        cure = "It asks for no GPU: add gpu to it, or make the program do without one."
    return Reason(sign.code, f"{text} Its log says that {sign.text}.", cure, lines=said.lines)


def _check_words(said: LastWords) -> tuple[str, str]:
    """(startup | readiness | liveness, what it said) of the last failed health check; ("", "") of none."""
    for reason, message in reversed(said.events):
        found = _CHECK.match(message) if reason == "Unhealthy" else None
        if found:
            words = _STATUS.sub(r"it answers with HTTP status \1", found[2])
            return found[1].lower(), f": {_short(words)}"
    return "", ""


def _ended_by_check(said: LastWords) -> bool:
    return any(
        reason == "Killing" and "probe, will be restarted" in message
        for reason, message in said.events[-4:]
    )


def _last(failed: Sequence[Instance]) -> Instance | None:
    return max(
        failed,
        key=lambda i: (i.ended_at is not None, i.ended_at or i.created_at, i.name),
        default=None,
    )


def _lost(instance: Instance, row: Workload) -> Reason:
    node = instance.node
    if not row.spec.endless:
        return Reason(Code.NODE_LOST, f"{node} does not answer; it is tried again elsewhere.")
    disks = [volume.name for volume in row.spec.volumes if volume.kind.value == "disk"]
    if disks:
        return Reason(
            Code.NODE_LOST,
            f"{node} does not answer, and its volume {disks[0]} lies there: it waits for {node}.",
        )
    if row.spec.node:
        return Reason(
            Code.NODE_LOST,
            f"{node} does not answer, and it may run only there: it waits for {node}.",
        )
    return Reason(Code.NODE_LOST, f"{node} does not answer; a replacement starts elsewhere.")


def _out_of_memory(row: Workload) -> Reason:
    return Reason(
        Code.OUT_OF_MEMORY,
        f"It used more than its {show_gib(row.spec.instance_memory_mib)} of memory and was ended.",
        "Give it more memory (resources.memory).",
    )


def _exit(instance: Instance | None) -> str:
    if instance is None or instance.exit_code is None:
        return ""
    meaning = signs.EXITS.get(instance.exit_code)
    return f" The last exit code was {instance.exit_code}{f' ({meaning})' if meaning else ''}."


def _with_exit(instance: Instance) -> str:
    words = signs.exit_words(instance.exit_code)
    return f" with {words}" if words else ""


def _restarts(count: int) -> str:
    return f"it was started again {_times(count)}" if count else "it is started again"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _short(text: str, most: int = 240) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
