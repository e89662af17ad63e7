"""Another process on the same database. Run as `python worker.py ROLE URL KEY_FILE [NUMBER]`.

open    opens the store, notes a secret and an event of its number, says `ok`, or the refusal's class and sentence
write   writes a workload with its event, then saves it with another event, for ever; after each commit a line
hold    stays inside a write transaction until it is killed
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

from nouns import a_revision, a_workload, an_event

from podwarden.domain.workload import State
from podwarden.errors import PodWardenError
from podwarden.store import Store, Unit


async def main(role: str, url: str, key_file: str, number: str = "0") -> None:
    try:
        store = Store.open(url, Path(key_file))
    except PodWardenError as error:
        say(f"{type(error).__name__}: {error}")
        return
    if role == "open":
        await store.write(lambda unit: _note(unit, number))
        await store.close()
        say("ok")
    elif role == "hold":
        await store.write(_hold)
    else:
        await _write_for_ever(store)


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _note(unit: Unit, number: str) -> None:
    unit.secrets.set(f"s{number}", f"value {number}", "bo")
    unit.events.append(an_event(f"s{number}"))


def _hold(unit: Unit) -> None:
    unit.events.append(an_event("held"))
    say("holding")
    threading.Event().wait()


async def _write_for_ever(store: Store) -> None:
    number = 0
    while True:
        number += 1
        workload = a_workload(f"w{number}", f"name-{number}")

        def add(unit: Unit) -> None:
            unit.workloads.add(workload, a_revision(workload))  # noqa: B023
            unit.events.append(an_event(workload.id, "version 1"))  # noqa: B023

        def start(unit: Unit) -> None:
            started = a_workload(workload.id, workload.name, state=State.STARTING)  # noqa: B023
            unit.workloads.save(started)
            unit.events.append(an_event(workload.id, "version 2"))  # noqa: B023

        await store.write(add)
        say(f"{workload.id} 1")
        await store.write(start)
        say(f"{workload.id} 2")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
