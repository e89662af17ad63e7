"""From the cluster's own words about one instance to a reason code and a sentence. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podwarden.domain.observation import Instance
from podwarden.domain.reason import Code, Reason
from podwarden.domain.units import show_duration, show_gib
from podwarden.domain.workload import State, Workload

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


def of_waiting(instance: Instance, row: Workload, lost_nodes: Collection[str]) -> Reason | None:
    """Why an instance that has not ended is not ready; None when it says nothing (or is ready)."""
    node = instance.node
    if node and node in lost_nodes:
        return _lost(instance, row)
    if instance.ready or instance.terminating:
        return None
    return _pending(instance, row) if instance.phase == "pending" else _not_ready(instance, row)


def _not_ready(instance: Instance, row: Workload) -> Reason:
    """It was started, and does not serve."""
    node = instance.node
    if instance.reason == "OOMKilled":
        return _out_of_memory(row)
    if instance.restarts or instance.reason in ("CrashLoopBackOff", "Error"):
        code = f" with exit code {instance.exit_code}" if instance.exit_code is not None else ""
        return Reason(
            Code.CRASH_LOOPING,
            f"On {node} its program ended{code}; {_restarts(instance.restarts)}.",
            "Its logs say why.",
        )
    if instance.reason == "Unhealthy" and row.state in (State.RUNNING, State.UNHEALTHY):
        said = f": {_short(instance.message)}" if instance.message else ""
        return Reason(Code.PROBE_FAILING, f"On {node} its health check fails{said}.")
    return Reason(Code.STARTING, f"It runs on {node}; its health check has not passed yet.")


def of_failed(
    row: Workload, failed: Sequence[Instance], why: str, spent: Collection[int]
) -> Reason:
    """The final word on a job. why: the cluster's; spent: tasks of an array that failed for good."""
    last = max(
        failed,
        key=lambda i: (i.ended_at is not None, i.ended_at or i.created_at, i.name),
        default=None,
    )
    if spent:
        tasks = ", ".join(str(index) for index in sorted(_values(row, spent))[:8])
        more = f" and {len(spent) - 8} more" if len(spent) > 8 else ""
        total = row.spec.job.tasks if row.spec.job is not None else len(spent)
        return Reason(
            Code.PROGRAM_FAILED,
            f"{len(spent)} of {total} tasks failed: {tasks}{more}.{_exit(last)}",
        )
    if why.startswith("DeadlineExceeded") or (
        last is not None and last.reason == "DeadlineExceeded"
    ):
        limit = row.spec.job.time_limit_s if row.spec.job is not None else None
        said = f" of {show_duration(limit)}" if limit else ""
        return Reason(Code.TIME_LIMIT, f"It ran longer than its time limit{said} and was ended.")
    if last is not None and last.reason == "OOMKilled":
        return _out_of_memory(row)
    if last is not None:
        tries = f" after {_times(len(failed))}" if len(failed) > 1 else ""
        return Reason(Code.PROGRAM_FAILED, f"Its program failed{tries}.{_exit(last)}")
    return Reason(Code.PROGRAM_FAILED, f"The cluster ended it: {_short(why)}")


def _values(row: Workload, indexes: Collection[int]) -> list[int]:
    first = row.spec.job.array[0] if row.spec.job is not None and row.spec.job.array else 0
    return [first + index for index in indexes]


def _pending(instance: Instance, row: Workload) -> Reason | None:
    node = instance.node
    if instance.reason == "Unschedulable":
        return Reason(
            Code.UNSCHEDULABLE,
            f"The cluster finds no room for it: {_short(instance.message)}",
        )
    if instance.reason in _PULL_ERRORS or (
        instance.reason in ("BackOff", "Failed") and "image" in instance.message.lower()
    ):
        said = _short(instance.message) or instance.reason
        return Reason(
            Code.IMAGE_PULL_FAILED,
            f"{node} cannot fetch the image {row.spec.image}: {said}",
            "Check the image's name, and whether it needs image_pull_secret.",
        )
    if instance.reason in _BROKEN_STARTS:
        return Reason(Code.STARTING, f"{node} cannot start it yet: {_short(instance.message)}")
    if node and instance.reason in _PULLS:
        return Reason(Code.PULLING_IMAGE, f"{node} fetches the image {row.spec.image}.")
    return Reason(Code.STARTING, f"It is being started on {node}.") if node else None


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
    return f" The last exit code was {instance.exit_code}."


def _restarts(count: int) -> str:
    return f"it was started again {_times(count)}" if count else "it is started again"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _short(text: str, most: int = 240) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
