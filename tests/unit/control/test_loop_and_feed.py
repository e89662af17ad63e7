"""The runner of loops under errors and hints, and notices to listeners that are too slow."""

import asyncio

import pytest

from podwarden.control.clock import SystemClock
from podwarden.control.feed import Feed
from podwarden.control.loop import Loop, Turn, guarded
from podwarden.errors import FenceLost, Unavailable


class Virtual:
    """Waiting takes no time; how long was asked for is kept."""

    def __init__(self):
        self.time = 0.0
        self.waits = []

    def monotonic(self):
        return self.time

    async def wait(self, event, seconds):
        self.waits.append(seconds)
        await asyncio.sleep(0)
        if event.is_set():
            return True
        self.time += seconds or 0
        return False


class Script:
    """Turns that do, one after the other, what they are told; then the fence is lost."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.turns = 0

    async def turn(self):
        self.turns += 1
        if not self.outcomes:
            raise FenceLost("over")
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def run(clock, script, **how):
    loop = Loop("test", script.turn, clock, **how)
    with pytest.raises(FenceLost):
        await loop.run()
    return loop


async def test_errors_back_off_twice_as_long_each_time_and_a_good_turn_resets_it():
    clock = Virtual()
    down = Unavailable("no answer")
    await run(clock, Script(down, down, down, Turn(again=5), down))
    assert clock.waits == [0.2, 0.4, 0.8, 5, 0.2]


async def test_the_last_error_is_told_until_a_turn_succeeds():
    clock = Virtual()
    loop = await run(clock, Script(Turn("did this"), Unavailable("no answer")))
    assert (loop.trouble, loop.said) == ("no answer", "did this")
    loop = await run(clock, Script(Unavailable("no answer"), Turn()))
    assert loop.trouble == ""


async def test_an_unknown_error_does_not_end_the_loop():
    script = Script(KeyError("bug"), Turn())
    await run(Virtual(), script)
    assert script.turns == 3


async def test_a_hint_during_a_turn_is_not_lost():
    clock = Virtual()
    turns = 0

    async def turn():
        nonlocal turns
        turns += 1
        if turns == 1:
            loop.hint()
            return Turn(again=1000)
        raise FenceLost("over")

    loop = Loop("test", turn, clock)
    with pytest.raises(FenceLost):
        await loop.run()
    assert (turns, clock.time) == (2, 0.0)


async def test_a_paced_loop_rests_as_long_as_it_worked():
    clock = Virtual()

    async def turn():
        clock.time += 0.3
        if clock.time > 0.5:
            raise FenceLost("over")
        return Turn(again=0)

    with pytest.raises(FenceLost):
        await Loop("test", turn, clock, pace=0.5).run()
    assert clock.waits == [pytest.approx(0.3), 0]


async def test_guarded_work_gives_its_error_and_lets_a_lost_fence_through():
    async def fails(error):
        raise error

    assert await guarded("x", asyncio.sleep(0)) is None
    assert isinstance(await guarded("x", fails(KeyError("bug"))), KeyError)
    with pytest.raises(FenceLost):
        await guarded("x", fails(FenceLost("over")))


async def test_the_system_clock_waits_for_the_event_or_the_time():
    clock, event = SystemClock(), asyncio.Event()
    assert await clock.wait(event, 0.001) is False
    event.set()
    assert await clock.wait(event, None) is True
    assert clock.now().utcoffset().total_seconds() == 0
    assert clock.monotonic() <= clock.monotonic()


async def test_listeners_hear_what_comes_after_they_came():
    feed = Feed()
    feed.publish("workload", "w1")
    async with feed.subscribe() as listener:
        feed.publish("workload", "w2")
        notice = await listener.next(1)
        assert (notice.id, notice.subject) == (2, "w2")
        assert await listener.next(0.001) is None


async def test_a_slow_listener_is_told_to_read_again_and_nothing_grows():
    feed = Feed(most=3)
    async with feed.subscribe() as listener:
        for n in range(100):
            feed.publish("workload", f"w{n}")
        notice = await listener.next(1)
        assert (notice.kind, notice.id) == ("reset", 100)
        assert await listener.next(0.001) is None


async def test_a_listener_that_comes_back_gets_what_it_missed():
    feed = Feed(kept=3)
    for n in range(5):
        feed.publish("workload", f"w{n}")
    async with feed.subscribe(after=3) as listener:
        assert [(await listener.next(1)).id for _ in range(2)] == [4, 5]
    for unknown in (0, 99):
        async with feed.subscribe(after=unknown) as listener:
            assert (await listener.next(1)).kind == "reset"


async def test_a_closed_feed_ends_its_listeners():
    feed = Feed()
    async with feed.subscribe() as listener:
        feed.close()
        assert await listener.next(10) is None
        assert listener.closed
