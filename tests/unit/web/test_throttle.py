from __future__ import annotations

from podwarden.web.throttle import MOST_KEYS, Throttle


class Hand:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_pause_after_some_wrong_tries_and_only_for_that_key():
    clock = Hand()
    throttle = Throttle(clock, tries=3, pause=60)
    assert [throttle.failed("a") for _ in range(3)] == [2, 1, 0]
    assert throttle.wait("a") == 60
    assert throttle.wait("b") == 0
    clock.now = 59.5
    assert throttle.wait("a") == 0.5
    clock.now = 60
    assert throttle.wait("a") == 0
    assert throttle.failed("a") == 2, "after the pause the count starts anew"


def test_a_right_one_forgets_the_wrong_ones():
    throttle = Throttle(Hand(), tries=3, pause=60)
    throttle.failed("a")
    throttle.failed("a")
    throttle.succeeded("a")
    assert throttle.failed("a") == 2


def test_memory_is_bounded():
    throttle = Throttle(Hand(), tries=1, pause=60)
    for number in range(MOST_KEYS + 50):
        throttle.failed(number)
    assert len(throttle._wrong) == MOST_KEYS
    assert throttle.wait(MOST_KEYS + 49) > 0
