"""What past runs teach: read once, again after enough has finished, and never more than fits."""

from datetime import timedelta
from types import SimpleNamespace

from controlmaking import job, row

from podwarden.control import past
from podwarden.control.past import Past


class Store:
    """history only: how long each template took, and how often each was asked for."""

    def __init__(self):
        self.asked = []
        self.mixes = 0
        self.unit = SimpleNamespace(history=self)

    async def read(self, work):
        return work(self.unit)

    def longest(self, template):
        self.asked.append(template)
        return timedelta(minutes=5)

    def mix(self):
        self.mixes += 1
        return ((1, 8192, self.mixes),)


def work(template):
    return row(job(template=template))


async def test_each_template_is_asked_for_once():
    store = Store()
    known = Past(store)
    for _ in range(2):
        await known.know([work("render"), work("render"), work("train")])
    assert sorted(store.asked) == ["render", "train"]
    assert known.expected(work("render")) == timedelta(minutes=5)
    known.learned(work("render"), 600.0)
    assert known.expected(work("render")) == timedelta(minutes=10)


async def test_the_mix_is_read_again_after_some_jobs():
    store = Store()
    known = Past(store)
    await known.refresh()
    for _ in range(past.MIX_AFTER - 1):
        known.learned(work("render"), 1.0)
    await known.know([])
    assert known.mix == ((1, 8192, 1),)
    known.learned(work("render"), 1.0)
    await known.know([])
    assert known.mix == ((1, 8192, 2),)
    await known.know([])
    assert store.mixes == 2


async def test_it_does_not_grow_without_end():
    store = Store()
    known = Past(store)
    for start in range(0, 3 * past.MOST, past.MOST):
        await known.know([work(f"t{n}") for n in range(start, start + past.MOST + 1)])
    assert len(known._longest) <= past.MOST + 1
    assert known.expected(work(f"t{3 * past.MOST}")) == timedelta(minutes=5)
