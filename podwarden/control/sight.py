"""What a plan is made from."""

from __future__ import annotations

from dataclasses import dataclass

from podwarden.control.books import Books
from podwarden.control.past import Past
from podwarden.domain.inventory import Node
from podwarden.domain.observation import Observation


@dataclass(frozen=True, slots=True)
class Sight:
    """A cluster as a plan would see it now."""

    books: Books
    past: Past
    seen: Observation
    known: dict[str, Node]
