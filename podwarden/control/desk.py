"""What the loops of one cluster share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from podwarden.control.books import Books
from podwarden.control.clock import Clock
from podwarden.control.ledger import Ledger
from podwarden.control.link import Link
from podwarden.control.past import Past
from podwarden.domain.inventory import Node


@dataclass(slots=True)
class Desk:
    """fence: the number to act with; raises FenceLost when this process may not act (any more).
    known: every node ever seen, with its devices, by name.
    """

    cluster: str
    link: Link
    ledger: Ledger
    books: Books
    past: Past
    clock: Clock
    fence: Callable[[], int]
    known: dict[str, Node] = field(default_factory=dict)
