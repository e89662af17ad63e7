"""From observation and rows to the snapshot of one plan."""

from dataclasses import replace
from datetime import timedelta

from controlmaking import NOW, at, device, instance, job, node, presence, row, service, waiting

from podwarden.control import hours
from podwarden.control.books import Books
from podwarden.control.snapshot import build, merge_known
from podwarden.domain.inventory import Holder, Holding
from podwarden.domain.observation import Observation
from podwarden.domain.workload import Desire, State, Volume, VolumeKind


class NoPast:
    mix = ()

    def __init__(self):
        self.places = {"renders": "n3"}

    def expected(self, workload):
        return timedelta(seconds=90) if workload.kind.value == "job" else None


def books_of(*rows):
    books = Books("home")
    for each in rows:
        books.put(each)
    return books


def seen(**changes):
    base = Observation("home", NOW, 1, nodes=(node("n1", device("n1", "gpu-1")),))
    return replace(base, **changes)


def make(books, observation, known=None, now=NOW):
    return build(books, observation, known or {}, NoPast(), now)


def test_queued_work_claims_and_started_work_is_reserved():
    books = books_of(row(state=State.QUEUED), row(state=State.STARTING, id="w2", name="b"))
    view = make(books, seen())
    assert [c.workload for c in view.claimants] == ["w1"]
    assert [(r.workload, r.devices) for r in view.reserved] == [("w2", ("gpu-1",))]


def test_what_is_to_stop_neither_claims_nor_reserves():
    books = books_of(row(state=State.STOPPING, desire=Desire.STOP))
    view = make(books, seen())
    assert (view.claimants, view.reserved) == ((), ())


def test_a_claimant_carries_what_the_instance_takes():
    (claim,) = make(books_of(row(service(memory_mib=1000), State.QUEUED)), seen()).claimants
    assert claim.memory_mib == 1000 + 2048  # shared memory of one GPU
    assert claim.endless
    assert (claim.slots, claim.at_least) == (1, 1)


def test_an_array_asks_for_all_and_a_gang_takes_nothing_less():
    (loose,) = make(books_of(row(job(array=(1, 9)), State.QUEUED)), seen()).claimants
    assert (loose.slots, loose.at_least) == (9, 1)
    (gang,) = make(books_of(row(job(array=(1, 3), gang=True), State.QUEUED)), seen()).claimants
    assert (gang.slots, gang.at_least) == (3, 3)
    (few,) = make(books_of(row(job(array=(1, 9), parallelism=2), State.QUEUED)), seen()).claimants
    assert few.slots == 2


def test_a_started_array_asks_for_its_gated_tasks_only():
    array = row(job(array=(1, 9)))
    tasks = (instance("t0", index=0), waiting("t1", index=1, gated=True), waiting("t2", index=2, gated=True))  # fmt: skip
    (claim,) = make(books_of(array), seen(instances={"w1": tasks})).claimants
    assert (claim.slots, claim.at_least, claim.started) == (2, 1, True)


def test_a_lost_node_makes_a_displaced_claimant():
    lost = seen(
        nodes=(node("n1", device("n1", "gpu-1"), ready=False),), instances={"w1": (instance(),)}
    )
    view = make(books_of(row()), lost)
    assert [(c.displaced, c.slots) for c in view.claimants] == [(True, 1)]
    assert view.reserved == ()


def test_a_finished_run_still_in_the_cluster_keeps_a_job_out_of_the_plan():
    books = books_of(row(job(), State.QUEUED))
    old_run = seen(presences={"w1": presence("Job", complete=True)})
    assert make(books, old_run).claimants == ()
    assert len(make(books, seen()).claimants) == 1


def test_what_was_parked_is_left_out_until_its_time():
    books = books_of(row(state=State.QUEUED))
    books.parked["w1"] = (at(10), 15.0)
    assert make(books, seen()).claimants == ()
    assert len(make(books, seen(), now=at(11)).claimants) == 1


def test_a_volume_on_a_node_binds_the_workload_there():
    disk = service(volumes=(Volume("models", "/m", VolumeKind.DISK, 1024),))
    placed = seen(volume_nodes={"w1/models": "n3"})
    (claim,) = make(books_of(row(disk, State.QUEUED)), placed).claimants
    assert claim.nodes == {"n3"}
    assert "models" in claim.nodes_why
    both = replace(disk, node="n2")
    (nowhere,) = make(books_of(row(both, State.QUEUED)), placed).claimants
    assert nowhere.nodes == frozenset()


def test_a_storage_on_a_node_binds_the_workload_there_and_one_in_the_network_does_not():
    renders = Volume("v", "/v", VolumeKind.STORAGE, storage="renders")
    media = Volume("w", "/w", VolumeKind.STORAGE, storage="media")
    (claim,) = make(
        books_of(row(service(volumes=(media, renders)), State.QUEUED)), seen()
    ).claimants
    assert (claim.nodes, claim.nodes_why) == ({"n3"}, "its storage renders")
    (free,) = make(books_of(row(service(volumes=(media,)), State.QUEUED)), seen()).claimants
    assert free.nodes is None


def test_holdings_of_our_own_say_when_they_end():
    held = Holding("gpu-1", "n1", 0, 64, Holder("render", "w1", instance="render-1"))
    going = seen(holdings=(held,), instances={"w1": (instance("render-1", started_at=NOW),)})
    (guessed,) = make(books_of(row(job())), going).holdings
    assert (guessed.holder.ends_by, guessed.holder.expected_end) == (at(90), True)
    assert not guessed.holder.endless
    (limited,) = make(books_of(row(job(time_limit_s=60))), going).holdings
    assert (limited.holder.ends_by, limited.holder.expected_end) == (at(90), False)
    (endless,) = make(books_of(row()), going).holdings
    assert (endless.holder.endless, endless.holder.ends_by) == (True, None)


def test_gpus_once_seen_stay_listed():
    known = {"n1": node("n1", device("n1", "gpu-1"), device("n1", "gpu-2")), "n9": node("n9", device("n9", "gpu-9"))}  # fmt: skip
    first, gone = merge_known((node("n1", device("n1", "gpu-1")),), known)
    assert [(d.uuid, d.present) for d in first.devices] == [("gpu-1", True), ("gpu-2", False)]
    assert not first.agent_away
    assert (gone.name, gone.ready, gone.devices[0].present) == ("n9", False, False)


def test_a_node_whose_slice_is_away_says_so():
    (bare,) = merge_known((node("n1"),), {"n1": node("n1", device("n1", "gpu-1"))})
    assert bare.agent_away
    assert [d.present for d in bare.devices] == [False]


def test_hours_over_midnight():
    assert hours.is_open("22:00-07:00", NOW.replace(hour=23))
    assert hours.is_open("22:00-07:00", NOW.replace(hour=6, minute=59))
    assert not hours.is_open("22:00-07:00", NOW.replace(hour=7))
    assert hours.is_open("", NOW)
    assert hours.next_change("22:00-07:00", NOW) == NOW.replace(hour=22)
    assert hours.next_change("22:00-07:00", NOW.replace(hour=23)) == NOW.replace(day=3, hour=7)
    assert hours.next_change("", NOW) is None


def test_closed_hours_are_on_the_claimant():
    (claim,) = make(books_of(row(job(hours="22:00-07:00"), State.QUEUED)), seen()).claimants
    assert not claim.open_hours or hours.is_open("22:00-07:00", NOW)
