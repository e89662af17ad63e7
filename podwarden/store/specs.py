"""Specs as stored text. Writing makes sure that reading will work: one row that cannot be read would stop
every planning pass.
"""

from __future__ import annotations

from functools import lru_cache

from podwarden.domain.document import spec_from_json, spec_to_json
from podwarden.domain.workload import Spec
from podwarden.errors import Invalid, Unavailable

_KEPT = 20_000  # specs, about 2 KiB each


@lru_cache(_KEPT)
def spec_text(spec: Spec) -> str:
    """Invalid with every problem where the spec breaks a rule of workload files: it is not stored."""
    text = spec_to_json(spec)
    _spec(text)
    return text


def spec_of(text: str, name: str) -> Spec:
    """Unavailable: stored by a version with other rules, `name` says which workload it is."""
    try:
        return _spec(text)
    except (Invalid, ValueError) as error:
        raise Unavailable(
            f"The stored spec of {name} does not follow the rules of this version ({error}): run the version that "
            "stored it, delete the workload there or change it, then come back."
        ) from error


@lru_cache(_KEPT)
def _spec(text: str) -> Spec:
    return spec_from_json(text)
