"""Where a class of claimants fits now, best first, kept up to date as the pass fills the nodes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

from podwarden.scheduling.books import Books, NodeBook
from podwarden.scheduling.feasible import Cap, Class, choose
from podwarden.scheduling.rank import Ranker, Score

Choice = tuple[Score, tuple[int, ...]]  # how good, and the positions of the GPUs
Entry = tuple[
    Score, int, tuple[int, ...]
]  # the same with the node's index: the fixed order of ties
Caps = Callable[[int], tuple[Cap, ...]]


class Candidates:
    """The index behind one class: a sorted list, changed only for nodes that changed since the last look.

    memo: answers by a node's state, shared between classes of equal need; nodes of a large cluster are mostly
    alike, so that most answers are found there.
    """

    def __init__(
        self,
        books: Books,
        asked: Class,
        ranker: Ranker,
        caps: Caps,
        memo: dict[object, Choice | None],
    ) -> None:
        self._books = books
        self._asked = asked
        self._ranker = ranker
        self._caps = caps
        self._memo = memo
        self._entries: list[Entry] = []
        self._current: dict[int, Entry] = {}
        self._seen = len(books.log)
        for node in books.nodes:
            self._look(node)

    def best(self) -> tuple[NodeBook, tuple[int, ...]] | None:
        self._refresh()
        if not self._entries:
            return None
        _, index, positions = self._entries[0]
        return self._books.nodes[index], positions

    def nearest(self, most: int) -> list[str]:
        """Names of up to `most` nodes that fit now, best first."""
        self._refresh()
        return [self._books.nodes[index].name for _, index, _ in self._entries[:most]]

    def _refresh(self) -> None:
        log = self._books.log
        if self._seen == len(log):
            return
        for index in sorted(set(log[self._seen :])):
            old = self._current.pop(index, None)
            if old is not None:
                del self._entries[bisect_left(self._entries, old)]
            self._look(self._books.nodes[index])
        self._seen = len(log)

    def _look(self, node: NodeBook) -> None:
        choice = self._choice(node)
        if choice is not None:
            entry = (choice[0], node.index, choice[1])
            self._current[node.index] = entry
            insort(self._entries, entry)

    def _choice(self, node: NodeBook) -> Choice | None:
        if not self._asked.need.allows(node.name):
            return None
        caps = self._caps(node.index)
        if caps:
            return self._judge(node, caps)
        state = node.state()
        if state not in self._memo:
            self._memo[state] = self._judge(node, ())
        return self._memo[state]

    def _judge(self, node: NodeBook, caps: tuple[Cap, ...]) -> Choice | None:
        positions = choose(node, self._asked, caps)
        if positions is None:
            return None
        return self._ranker.score(node, self._asked.need, positions), positions
