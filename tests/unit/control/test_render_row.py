"""A row as objects: what of it reaches the pods, and what must not."""

from dataclasses import replace

from controlmaking import NOW, row, service

from podwarden.control import revising
from podwarden.control.needs import Needs
from podwarden.control.render import render_row
from podwarden.domain.inventory import Capabilities
from podwarden.domain.observation import Observation
from podwarden.domain.workload import Priority, Revision, Update

SEEN = Observation("home", NOW, 1, capabilities=Capabilities())


def main(workload):
    return render_row(workload, (), Needs({}, {}), SEEN).objects[-1]


def with_priority(workload, priority):
    """As `workload priority` does."""
    return replace(workload, spec=replace(workload.spec, priority=priority))


def admitted(spec, **facts):
    return row(spec, facts=tuple(facts.items()))


def test_a_new_priority_does_not_touch_the_pods_that_are_there():
    before = admitted(service(), pods_priority="normal")
    after = with_priority(before, Priority.CRITICAL)
    assert main(after)["spec"]["template"] == main(before)["spec"]["template"]
    assert main(before)["spec"]["template"]["spec"]["priorityClassName"] == "podwarden-normal"


def test_the_next_revision_takes_the_priority_along():
    urgent = with_priority(admitted(service(), pods_priority="normal"), Priority.HIGH)
    new = revising.begun(urgent, urgent.spec, None, mode="surge", number=2, now=NOW)
    assert main(new)["spec"]["template"]["spec"]["priorityClassName"] == "podwarden-high"
    before = Revision("w1", 1, service(priority=Priority.LOW), NOW, "ann")
    back = revising.turned_back(new, before, 3, "It failed.", NOW)
    assert main(back)["spec"]["template"]["spec"]["priorityClassName"] == "podwarden-low"


def test_what_nobody_noted_is_as_the_spec_says():
    workload = row(service(priority=Priority.IDLE))
    assert main(workload)["spec"]["template"]["spec"]["priorityClassName"] == "podwarden-idle"


def test_the_way_of_an_update_is_the_strategy():
    assert main(row())["spec"]["strategy"]["type"] == "RollingUpdate"
    assert main(row(service(update=Update.RECREATE)))["spec"]["strategy"]["type"] == "Recreate"
    chosen = admitted(service(), update_mode="recreate")
    assert main(chosen)["spec"]["strategy"]["type"] == "Recreate"
