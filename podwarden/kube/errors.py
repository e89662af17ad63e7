"""From an API server's answers to PodWarden's errors.

Bodies are trimmed before they become a message: an answer may repeat the object it refuses, and that object may
hold a secret. What a caller inside this room must tell apart has its own class here; each is a podwarden error too.

404 NotFound   409 Conflict   410 Expired   403/422 Refused, FenceLost when the fence policy spoke,
403 NoAccess when PodWarden has not the rights
401 NoAccess   429, 5xx, time-out, no connection: Unavailable, after the client's own retries
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from podwarden.errors import (
    Conflict,
    FenceLost,
    NotFound,
    PodWardenError,
    Refused,
    Unavailable,
    shorten,
)
from podwarden.kube.labels import FENCE_POLICY

# `spec.x: Invalid value: v1.EnvVar{Name:"A", …}: must be …` without the value.
_VALUE = re.compile(
    r'(Invalid|Unsupported|Duplicate) value: ("(?:[^"\\]|\\.)*"|[\w.*&\[\]]*\{.*\}|[^:]*)',
    re.DOTALL,
)
# A policy or a quota of the cluster forbids this one thing; any other 403 is about who asks.
_POLICY = re.compile(
    r"exceeded quota|violates PodSecurity|denied (the )?request|LimitRange|minimum|maximum"
)
_EXCERPT = re.compile(r"error found in #.*", re.DOTALL)
_SECRETIVE = ("secret", "configmap")


class Expired(Unavailable):
    """The point to resume a watch or a list from is too old: read everything again."""

    code = "EXPIRED"


class Immutable(Refused):
    """A field that cannot be changed in place was changed."""

    code = "REFUSED_BY_CLUSTER"


class NoAccess(Refused):
    """PodWarden's own rights are not accepted, whatever it asks for. An API server that has just started answers so for
    a moment, before it has read who may do what.
    """

    code = "CLUSTER_FORBIDS"


def from_answer(server: str, doing: str, status: int, body: bytes) -> PodWardenError:
    """doing: what was tried, as a sentence's middle: `apply Deployment vllm`."""
    answer = _status(body)
    message = str(answer.get("message", ""))
    if status in (403, 422) and FENCE_POLICY in message:
        return FenceLost(f"Another PodWarden leads {server} now: PodWarden did not {doing}.")
    if status == 429 or status >= 500:
        text = f"{server} is overloaded or restarting (HTTP {status}): PodWarden could not {doing}."
        return Unavailable(text)
    if status == 422 and "immutable" in message:
        return Immutable(f"{server} refused to {doing}: {_said(doing, answer)}")
    build = _BY_STATUS.get(status, _refused)
    if status == 403 and _POLICY.search(message):
        build = _refused
    return build(server, doing, _said(doing, answer))


def _unauthenticated(server: str, _doing: str, _said: str) -> PodWardenError:
    text = f"{server} does not accept these credentials. Give a kubeconfig that works now."
    return NoAccess(text, code="CLUSTER_CREDENTIALS")


def _forbidden(server: str, doing: str, said: str) -> PodWardenError:
    fix = "Give a kubeconfig with administrator rights."
    text = f"{server} does not allow PodWarden to {doing}: {said} {fix}"
    return NoAccess(text)


def _not_found(server: str, doing: str, _said: str) -> PodWardenError:
    return NotFound(f"{server} could not {doing}: it does not exist.")


def _conflict(server: str, doing: str, said: str) -> PodWardenError:
    return Conflict(f"{server} could not {doing}: {said}")


def _expired(server: str, doing: str, _said: str) -> PodWardenError:
    return Expired(f"{server} could not {doing}: the point to resume from is too old.")


def _refused(server: str, doing: str, said: str) -> PodWardenError:
    return Refused(f"{server} refused to {doing}: {said}", code="REFUSED_BY_CLUSTER")


_BY_STATUS: dict[int, Callable[[str, str, str], PodWardenError]] = {
    401: _unauthenticated,
    403: _forbidden,
    404: _not_found,
    409: _conflict,
    410: _expired,
}


def from_event(server: str, doing: str, status: Mapping[str, Any]) -> PodWardenError:
    """An ERROR event inside a watch carries the same Status object as an answer."""
    code = status.get("code")
    return from_answer(
        server, doing, code if isinstance(code, int) else 500, json.dumps(status).encode()
    )


def _status(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _said(doing: str, answer: Mapping[str, Any]) -> str:
    """The server's sentence without the values in it; for secrets only its short reason."""
    details = answer.get("details")
    kind = str(details.get("kind", "")) if isinstance(details, dict) else ""
    if any(word in f"{kind} {doing}".lower() for word in _SECRETIVE):
        return f"{shorten(str(answer.get('reason', '')) or 'no reason given')}."
    message = _EXCERPT.sub("", _VALUE.sub(r"\1 value", str(answer.get("message", ""))))
    return f"{shorten(message, 300).rstrip('.') or 'no reason given'}."
