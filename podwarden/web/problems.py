"""Errors as problem details (RFC 9457): the same fields for every fault, with the stable code."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from podwarden.domain.reason import Reason
from podwarden.errors import (
    Conflict,
    FenceLost,
    Forbidden,
    Invalid,
    NotFound,
    PodWardenError,
    Problem,
    Refused,
    Unauthenticated,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger(__name__)

_STATUS: tuple[tuple[type[PodWardenError], int], ...] = (
    (Invalid, 422),
    (NotFound, 404),
    (Conflict, 409),
    (Forbidden, 403),
    (Unauthenticated, 401),
    (Refused, 422),
    (Unavailable, 503),
    (FenceLost, 503),
)


class TooMany(Refused):
    """Asked too often; `after` is how many seconds to wait."""

    code = "TOO_MANY"

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(message)
        self.after = after


class RefusedByPlan(Refused):
    """A request that can never fit: the reason's code and text, with its notes."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text, code=str(reason.code))
        self.reason = reason


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    problems: list[Problem] | None = None,
    headers: Mapping[str, str] | None = None,
    **extra: Any,
) -> Response:
    """One answer in the one shape. extra: further members, such as `reason`."""
    body: dict[str, Any] = {
        "type": f"urn:podwarden:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "problems": [
            {"field": p.field, "value": p.value, "fix": p.fix, "line": p.line}
            for p in problems or []
        ],
        **extra,
    }
    return Response(
        json.dumps(body, ensure_ascii=True),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def status_of(error: PodWardenError) -> int:
    if isinstance(error, TooMany):
        return 429
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def of(error: PodWardenError) -> Response:
    """The answer for one of our own errors. What is a fault of PodWarden is logged, not shown."""
    status = status_of(error)
    if status == 500:
        log.error("An error without an answer of its own: %s", error.code, exc_info=error)
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(max(1, round(error.after)))
    elif status == 503:
        headers["Retry-After"] = "2"
    elif status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="PodWarden"'
    if isinstance(error, RefusedByPlan):
        extra["reason"] = reason_members(error.reason)
    return problem(
        status,
        error.code,
        error.message,
        problems=error.problems if isinstance(error, Invalid) else None,
        headers=headers,
        **extra,
    )


def reason_members(reason: Reason) -> dict[str, Any]:
    return {
        "code": str(reason.code),
        "text": reason.text,
        "remedy": reason.remedy,
        "notes": [
            {"node": n.node, "device": n.device, "code": str(n.code), "text": n.text}
            for n in reason.notes
        ],
        "ahead": list(reason.ahead),
    }
