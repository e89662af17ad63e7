"""What the last lines of a log, an exit code, a registry or a node's complaint mean: data, and one pure look-up each.

The cases are in `tests/scenarios/signs.yaml`. A pattern is added with the line that somebody saw.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podwarden.domain.reason import Code

MOST_LINE = 2000  # characters of a line that are looked at


@dataclass(frozen=True, slots=True)
class Sign:
    """text goes on after a colon; remedy is a sentence. Patterns know no case and must be quick on any line."""

    code: Code
    text: str
    remedy: str
    patterns: tuple[str, ...]

    def seen_in(self, line: str) -> bool:
        return any(_compiled(pattern).search(line) for pattern in self.patterns)


_KNOWN: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    if pattern not in _KNOWN:
        _KNOWN[pattern] = re.compile(pattern, re.IGNORECASE)
    return _KNOWN[pattern]


# Of a log, the most telling first: an encoder that is full says "out of memory", a full /dev/shm "no space left".
LOG = (
    Sign(
        Code.ENCODER_SESSIONS,
        "the graphics driver allows no more video encoding sessions on this node",
        "Run fewer transcodes at once there, or set gpu.encoder_sessions, so that they wait for one another.",
        (
            r"OpenEncodeSessionEx failed: (out of memory|incompatible client key)",
            r"nvenc.{0,80}No capable devices found",
            r"No capable devices found.{0,40}nvenc",
            r"NV_ENC_ERR_OUT_OF_MEMORY",
            r"maximum number of (concurrent )?(nvenc|encod\w+) sessions",
        ),
    ),
    Sign(
        Code.SHM_TOO_SMALL,
        "its shared memory (/dev/shm) is full",
        "Give it more with shm, such as shm: 8Gi.",
        (
            r"posix_fallocate failed ?: No space left on device",
            r"/dev/shm\b.{0,200}(No space left|size \d+|failed|error|insufficient)",  # noqa: S108 - a pattern
            r"(error|failed|unable).{0,80}shared memory segment",
            r"insufficient shared memory \(shm\)",
            r"DataLoader worker \(pid.{0,40}killed by signal: Bus error",
            r"unable to (open|write|resize|mmap).{0,80}(shm|shared memory)",
        ),
    ),
    Sign(
        Code.OUT_OF_VRAM,
        "it found no more VRAM on its GPU",
        "Ask for more VRAM, or use a smaller model, context or batch.",
        (
            r"CUDA( error:)? out of memory",
            r"torch\.(cuda\.)?OutOfMemoryError",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"cudaErrorMemoryAllocation",
            r"cuda(Malloc|_malloc)\w*.{0,60}(failed|out of memory)",
            r"ggml_\w*(cuda|gallocr)\w*.{0,120}(out of memory|failed to allocate)",
            r"HIP out of memory",
            r"System is out of GPU memory",
            r"not enough (GPU )?memory to (allocate|load).{0,60}(GPU|VRAM|CUDA)",
            r"No available memory for the cache blocks",
            r"(less than|below) desired GPU memory utilization",
            r"OptiX.{0,80}out of memory",
        ),
    ),
    Sign(
        Code.NO_GPU_VISIBLE,
        "it sees no GPU",
        "Check the driver and the NVIDIA runtime of the node.",
        (
            r"No CUDA GPUs are available",
            r"no CUDA-capable device is detected",
            r"Torch not compiled with CUDA enabled",
            r"Failed to (initialize|infer) (NVML|device type)",
            r"Found no NVIDIA driver on your system",
            r"The NVIDIA Driver was not detected",
            r"no NVIDIA GPU (was )?(detected|found)",
            r"(libcuda|libnvidia-ml)\.so(\.1)?: cannot open shared object",
            r"could not select device driver",
            r"CUDA driver version is insufficient",
            r"no compatible GPUs were discovered",
            r"No (devices of type|compatible|usable).{0,30}(CUDA|OPTIX|GPU)",
            r"Cannot load (libnvcuvid|libnvidia-encode|nvcuda)",
            r"\bNO_GPU_DEVICE\b",
        ),
    ),
    Sign(
        Code.OUT_OF_MEMORY,
        "it found no more memory (not VRAM)",
        "Give it more memory (resources.memory).",
        (
            r"\b_?(Array)?MemoryError\b",
            r"JavaScript heap out of memory",
            r"java\.lang\.OutOfMemoryError",
            r"std::bad_alloc",
            r"\[Errno 12\] Cannot allocate memory",
            r"DefaultCPUAllocator: (can't|not enough)",
            r"unable to mmap \d+ bytes.{0,60}Cannot allocate memory",
        ),
    ),
    Sign(
        Code.DISK_PRESSURE,
        "a disk that it writes to is full",
        "Free room there, or give its volume a larger size.",
        (
            r"No space left on device",
            r"\[Errno 28\]",
            r"\bENOSPC\b",
            r"database or disk is full",
            r"disk quota exceeded",
        ),
    ),
)  # fmt: skip

# Of what a registry, or the node on its way there, answers.
PULL = (
    Sign(
        Code.DISK_PRESSURE,
        "the node's disk is full",
        "Free room on that node: images and cached models are what usually fills it.",
        (r"no space left on device", r"disk ?pressure"),
    ),
    Sign(
        Code.IMAGE_PULL_FAILED,
        "the registry allows no more downloads for now",
        "It is tried again by itself; a login (image_pull_secret) has a larger allowance.",
        (r"toomanyrequests", r"rate limit", r"429 Too Many Requests"),
    ),
    Sign(
        Code.IMAGE_PULL_FAILED,
        "there is no image of that name and tag for this kind of machine",
        "Choose a tag that is built for it.",
        (r"no match for platform", r"no matching manifest", r"does not provide.{0,40}platform"),
    ),
    Sign(
        Code.IMAGE_PULL_FAILED,
        "there is no such tag",
        "Check the tag behind the image's name.",
        (r"manifest unknown", r"manifest for .{0,200} not found", r"/manifests/\S{1,200}: 404", r": not found$"),
    ),
    Sign(
        Code.IMAGE_PULL_FAILED,
        "the registry wants a login, or there is no such image",
        "Check the image's name; a private one needs image_pull_secret.",
        (
            r"pull access denied", r"\bunauthorized\b", r"authentication required", r"insufficient_scope",
            r"\b40[13]\b.{0,20}(Forbidden|Unauthorized)", r"denied: ", r"repository does not exist",
            r"no basic auth credentials",
        ),
    ),
    Sign(
        Code.IMAGE_PULL_FAILED,
        "the registry's certificate is not trusted by the node",
        "Install the registry's certificate authority on the node.",
        (r"x509: ", r"certificate signed by unknown authority", r"server gave HTTP response to HTTPS client"),
    ),
    Sign(
        Code.IMAGE_PULL_FAILED,
        "the node does not reach the registry",
        "Check the node's network and DNS, and the registry's address.",
        (
            r"no such host", r"i/o timeout", r"connection refused", r"TLS handshake timeout",
            r"context deadline exceeded", r"network is unreachable", r"temporary failure in name resolution",
        ),
    ),
    Sign(
        Code.IMAGE_PULL_FAILED,
        "this is no name of an image",
        "Write it as registry/name:tag.",
        (r"invalid reference format", r"couldn't parse image name", r"InvalidImageName"),
    ),
)  # fmt: skip

# Of what a node says when it takes work away or does not take it.
NODE = (
    Sign(
        Code.DISK_PRESSURE,
        "its disk is nearly full",
        "Free room on that node: images and cached models are what usually fills it.",
        (
            r"low on resource: ephemeral-storage", r"disk-?pressure", r"NodeHasDiskPressure", r"FreeDiskSpaceFailed",
            r"failed to garbage collect required amount", r"reclaim ephemeral-storage",
            r"exceeds the (total )?limit.{0,40}(ephemeral|emptyDir)", r"ephemeral local storage usage exceeds",
        ),
    ),
    Sign(
        Code.OUT_OF_MEMORY,
        "it ran short of memory",
        "Give it more memory (resources.memory), so that it goes where there is enough.",
        (r"low on resource: memory", r"memory-?pressure", r"reclaim memory"),
    ),
)  # fmt: skip

# What an exit code says by itself; signals are 128 and their number.
EXITS = {
    126: "its command cannot be run",
    127: "its command is not in the image",
    132: "it uses an instruction that this CPU does not have",
    135: "a bus error, often for want of shared memory",
    137: "it was killed",
    139: "it crashed with a memory fault",
    143: "it was told to end",
}


def of_log(lines: Sequence[str]) -> Sign | None:
    """The most telling sign among the last lines of a log."""
    return _first(LOG, lines)


def of_pull(message: str) -> Sign | None:
    return _first(PULL, (message,))


def of_node(message: str) -> Sign | None:
    return _first(NODE, (message,))


def exit_words(code: int | None) -> str:
    """`exit code 127 (its command is not in the image)`; "" where it is not known."""
    if code is None:
        return ""
    meaning = EXITS.get(code)
    return f"exit code {code} ({meaning})" if meaning else f"exit code {code}"


def _first(signs: Iterable[Sign], lines: Sequence[str]) -> Sign | None:
    short = [line[:MOST_LINE] for line in lines]
    return next((sign for sign in signs if any(sign.seen_in(line) for line in short)), None)
