"""Slows down guessing of passwords: after some wrong tries a pause, per name and address."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

MOST_KEYS = 10_000  # remembered at once; the longest unused is forgotten first


class Throttle:
    """tries: wrong ones until the pause; pause: seconds, counted from the last wrong try."""

    def __init__(self, clock: Callable[[], float], *, tries: int, pause: float) -> None:
        self._clock = clock
        self._tries = tries
        self._pause = pause
        self._wrong: OrderedDict[Hashable, tuple[int, float]] = OrderedDict()

    def wait(self, key: Hashable) -> float:
        """Seconds to wait before the next try; 0 = may try now."""
        count, last = self._wrong.get(key, (0, 0.0))
        left = last + self._pause - self._clock()
        if left <= 0:
            self._wrong.pop(key, None)
            return 0.0
        return left if count >= self._tries else 0.0

    def failed(self, key: Hashable) -> int:
        """Counts a wrong try; gives how many are left before the pause."""
        count, _ = self._wrong.pop(key, (0, 0.0))
        self._wrong[key] = (count + 1, self._clock())
        while len(self._wrong) > MOST_KEYS:
            self._wrong.popitem(last=False)
        return max(self._tries - count - 1, 0)

    def succeeded(self, key: Hashable) -> None:
        self._wrong.pop(key, None)
