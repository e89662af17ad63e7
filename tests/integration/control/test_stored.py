"""Storages and secrets: added, used, refused, removed; what a workload names is there or it is not taken."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from cluster_double import gpu_node
from house import ADMIN, ANN, BOB, EVE, eventually, service

from podwarden.control.clock import SystemClock
from podwarden.control.reach import NfsServers
from podwarden.domain.inventory import Capabilities
from podwarden.domain.reason import Code
from podwarden.domain.workload import Expose, Port, State, Volume, VolumeKind
from podwarden.errors import Conflict, Forbidden, Invalid, NotFound

TOKEN = "hunter2"
WEB = (Port("http", 8080, Expose.LAN),)


def uses(*names, **more):
    volumes = tuple(
        Volume(f"v{n}", f"/v{n}", VolumeKind.STORAGE, storage=name) for n, name in enumerate(names)
    )
    return service(more.pop("name", "web"), more.pop("vram_gb", 0), volumes=volumes, **more)


async def add(house, name, **where):
    return await house.app.controller.storage.add(ADMIN, name, check=False, **where)


async def problems(call):
    with pytest.raises(Invalid) as caught:
        await call
    return [(p.field, p.value, p.fix) for p in caught.value.problems]


@asynccontextmanager
async def server(answers=True):
    """Something that listens on loopback, and its port."""
    held = []
    listening = await asyncio.start_server(lambda r, w: held.append(w), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    if not answers:
        listening.close()
    try:
        yield port
    finally:
        listening.close()
        for writer in held:
            writer.close()


# --- storages ---


async def test_a_workload_is_placed_where_its_storage_lies_and_given_it(house):
    await add(house, "renders", host="n2:/srv/renders")
    await add(house, "media", nfs="nas:/media")
    await house.workloads.submit(ANN, uses("renders", "media"))
    row = await house.reaches("web", State.RUNNING)
    assert row.nodes == ("n2",)
    assert house.cluster.given(row.id).storages == ("media", "renders")
    listed = {v.storage.name: v.used_by for v in await house.app.controller.storage.list(EVE)}
    assert listed == {"media": ("web",), "renders": ("web",)}


async def test_it_waits_for_the_node_of_its_storage_and_says_so(house):
    await add(house, "renders", host="n1:/srv/renders")
    house.cluster.set_node("n1", ready=False)
    await house.workloads.submit(ANN, uses("renders"))
    await house.workloads.submit(ANN, uses("renders", name="other"))

    def told():
        return house.workloads.verdict(row.id)

    row = await house.row("web")
    verdict = await eventually(told, "a verdict")
    assert row.state is State.QUEUED
    assert "its storage renders lies on n1" in verdict.reason.text
    house.cluster.set_node("n1", ready=True)
    assert (await house.reaches("web", State.RUNNING)).nodes == ("n1",)


async def test_what_cannot_be_had_is_refused_and_nothing_is_stored(house):
    await add(house, "renders", host="n1:/srv/renders")
    await add(house, "films", host="n2:/srv/films")
    submit = house.workloads.submit
    for dry_run in (True, False):
        ((field, value, fix),) = await problems(submit(ANN, uses("medai"), dry_run=dry_run))
        assert (field, value) == ("volumes[0].storage", "medai")
        assert "there is films and renders" in fix
    ((field, _, fix),) = await problems(submit(ANN, uses("renders", "films")))
    assert (field, "no node has both" in fix) == ("volumes[1].storage", True)
    ((field, _, fix),) = await problems(submit(ANN, uses("renders", node="n2")))
    assert "lies on n1, and the workload asks for node n2" in fix
    answer = await submit(ANN, uses("renders", avoid=("n1",)))
    assert answer.refusal.code is Code.NO_SUCH_NODE
    assert await house.workloads.list(ADMIN) == ()
    await submit(ANN, service("web", 0))
    await house.reaches("web", State.RUNNING)
    ((field, _, _),) = await problems(house.workloads.update(ANN, "web", uses("medai")))
    assert field == "volumes[0].storage"
    assert (await house.row("web")).revision == 1


async def test_a_storage_in_use_stays_until_its_last_workload_is_deleted(house):
    storage = house.app.controller.storage
    await add(house, "media", nfs="nas:/media")
    await house.workloads.submit(ANN, uses("media"))
    await house.workloads.submit(ANN, uses("media", name="other"))
    await house.reaches("web", State.RUNNING)
    await house.workloads.stop(ANN, "web")
    await house.reaches("web", State.STOPPED)
    with pytest.raises(Conflict, match="is used by web and other") as caught:
        await storage.remove(ADMIN, "media")
    assert caught.value.code == "STORAGE_IN_USE"
    for name in ("web", "other"):
        await house.workloads.delete(ANN, name)
    await storage.remove(ADMIN, "media")
    assert await storage.list(ADMIN) == ()
    with pytest.raises(NotFound):
        await storage.remove(ADMIN, "media")
    told = await house.app.store.read(lambda unit: unit.events.of("storage/media", 0, 10))
    assert [event.actor for event in told] == ["admin", "admin"]


async def test_only_admins_add_and_remove(house):
    storage = house.app.controller.storage
    for actor in (ANN, EVE):
        with pytest.raises(Forbidden):
            await storage.add(actor, "media", nfs="nas:/media", check=False)
        with pytest.raises(Forbidden):
            await storage.remove(actor, "media")
    assert await storage.list(EVE) == ()


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"nfs": "nas:media"}, ["nfs"]),
        ({"nfs": "nas:/a/../b"}, ["nfs"]),
        ({}, ["place"]),
        ({"nfs": "nas:/m", "host": "n1:/m"}, ["nfs"]),
        ({"host": "n1:/etc"}, ["host"]),
        ({"host": "n9:/srv"}, ["host"]),
        ({"host": "n1:/srv", "cluster": "away"}, ["cluster"]),
        ({"nfs": "nas:/m", "cluster": "home"}, ["cluster"]),
        ({"name": "Bad Name", "nfs": "x"}, ["name", "nfs"]),
    ],
)
async def test_places_that_are_none(house, given, fields):
    storage = house.app.controller.storage
    found = await problems(storage.add(ADMIN, given.pop("name", "m"), check=False, **given))
    assert [field for field, _, _ in found] == fields
    assert await storage.list(ADMIN) == ()


async def test_an_nfs_server_has_to_answer_when_it_is_added_and_when_it_is_used(start):
    async with server() as port:
        servers = NfsServers(SystemClock(), port=port)
        async with start(servers=servers) as house:
            await house.acts()
            storage = house.app.controller.storage
            await storage.add(ADMIN, "media", nfs="127.0.0.1:/media")
            await house.workloads.submit(ANN, uses("media"))
            await house.reaches("web", State.RUNNING)


async def test_an_nfs_server_that_is_away_is_said_in_time_and_nothing_is_half_done(start):
    async with server(answers=False) as port:
        servers = NfsServers(SystemClock(), port=port, within=1.0)
        async with start(servers=servers) as house:
            await house.acts()
            storage = house.app.controller.storage
            began = time.monotonic()
            ((field, value, fix),) = await problems(storage.add(ADMIN, "m", nfs="127.0.0.1:/m"))
            assert (field, value) == ("nfs", "127.0.0.1:/m")
            assert (
                f"127.0.0.1 does not answer on TCP port {port}: the connection was refused" in fix
            )
            ((_, _, fix),) = await problems(storage.add(ADMIN, "m", nfs="nas.invalid:/m"))
            assert "nas.invalid does not answer" in fix
            assert time.monotonic() - began < 10
            assert await storage.list(ADMIN) == ()
            await storage.add(ADMIN, "m", nfs="127.0.0.1:/m", check=False)
            await house.workloads.submit(ANN, uses("m"))  # nobody asked to look
            await house.reaches("web", State.RUNNING)


async def test_a_server_that_went_away_stops_the_deploy_before_anything_is_stored(start):
    async with server() as port:
        clock = SystemClock()
        async with start(servers=NfsServers(clock, port=port)) as house:
            await house.app.controller.storage.add(ADMIN, "media", nfs="127.0.0.1:/media")
    gone = NfsServers(SystemClock(), port=port, within=1.0)
    async with start(servers=gone) as house:
        await house.acts()
        for dry_run in (True, False):
            call = house.workloads.submit(ANN, uses("media"), dry_run=dry_run)
            ((field, value, fix),) = await problems(call)
            assert (field, value) == ("volumes[0].storage", "media")
            assert "Nothing was deployed" in fix
        assert await house.workloads.list(ADMIN) == ()
        assert house.cluster.told("apply") == []


# --- secrets ---


@pytest.fixture
async def login():
    """Asked for registries; refuses every password but one."""

    class Login:
        def __init__(self):
            self.asked = []

        async def __call__(self, registry, user, password):
            self.asked.append((registry, user))
            if password != TOKEN:
                raise Invalid.of("user", user, f"{registry} refuses it")
            return registry.removeprefix("https://")

    return Login()


@pytest.fixture
async def own(start, login):
    async with start(registry_login=login) as house:
        await house.acts()
        yield house


async def test_a_secret_is_given_to_the_workload_that_names_it_and_to_nobody_else(own):
    secrets = own.app.controller.secrets
    made = await secrets.set(ANN, "hf", TOKEN)
    assert (made.name, made.owner, made.registry, made.used_by) == ("hf", "ann", "", ())
    await own.workloads.submit(ANN, service("web", 0, secrets=(("HF_TOKEN", "hf"),)))
    row = await own.reaches("web", State.RUNNING)
    assert own.cluster.given(row.id).secrets == ("hf",)
    again = await secrets.set(ANN, "hf", "other")
    assert again.used_by == ("web",)
    assert await own.app.store.read(lambda unit: unit.secrets.get("hf")) == "other"
    told = await own.app.store.read(lambda unit: unit.events.since(0, 500))
    assert not [event for event in told if TOKEN in event.text]
    with pytest.raises(Conflict, match="is used by web") as caught:
        await secrets.delete(ANN, "hf")
    assert caught.value.code == "SECRET_IN_USE"


async def test_missing_secrets_are_named_before_anything_is_stored(own):
    spec = service("web", 0, secrets=(("A", "a"), ("B", "b")), image_pull_secret="pull")
    found = await problems(own.workloads.submit(ANN, spec))
    assert [(field, value) for field, value, _ in found] == [
        ("secrets.A", "a"),
        ("secrets.B", "b"),
        ("image_pull_secret", "pull"),
    ]
    assert "podwarden secret set a" in found[0][2]
    await own.app.controller.secrets.set(ANN, "pull", "no login")
    ((_, _, fix),) = await problems(
        own.workloads.submit(ANN, service("web", 0, image_pull_secret="pull"))
    )
    assert "this secret is none" in fix
    assert await own.workloads.list(ADMIN) == ()


async def test_a_registry_login_is_tried_before_it_is_kept(own, login):
    secrets = own.app.controller.secrets
    ((field, value, _),) = await problems(
        secrets.set(ANN, "pull", "wrong", registry="r.home", user="ann")
    )
    assert (field, value) == ("user", "ann")
    assert await secrets.list(ANN) == ()
    made = await secrets.set(ANN, "pull", TOKEN, registry="https://r.home", user="ann")
    assert made.registry == "r.home"
    stored = await own.app.store.read(lambda unit: unit.secrets.get("pull"))
    assert '"r.home"' in stored
    await own.workloads.submit(ANN, service("web", 0, image_pull_secret="pull"))
    await own.reaches("web", State.RUNNING)
    with pytest.raises(Conflict, match="is the registry login of web"):
        await secrets.set(ANN, "pull", "no login any more")
    assert await own.app.store.read(lambda unit: unit.secrets.get("pull")) == stored
    assert login.asked == [("r.home", "ann"), ("https://r.home", "ann")]


async def test_whose_secret_it_is(own):
    secrets = own.app.controller.secrets
    await secrets.set(ANN, "hf", TOKEN)
    for call in (lambda: secrets.set(BOB, "hf", "x"), lambda: secrets.delete(BOB, "hf")):
        with pytest.raises(Forbidden, match="belongs to ann"):
            await call()
    for call in (lambda: secrets.set(EVE, "own", "x"), lambda: secrets.delete(EVE, "hf")):
        with pytest.raises(Forbidden):
            await call()
    await secrets.set(ADMIN, "hf", "by an admin")
    assert [s.owner for s in await secrets.list(EVE)] == ["ann"]
    await secrets.delete(ADMIN, "hf")
    with pytest.raises(NotFound):
        await secrets.delete(ADMIN, "hf")


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"name": "Bad Name"}, ["name"]),
        ({"value": ""}, ["value"]),
        ({"value": "a\0b"}, ["value"]),
        ({"value": "x" * 70_000}, ["value"]),
        ({"registry": "r.home"}, ["user"]),
        ({"registry": "r.home", "user": "a:b"}, ["user"]),
        ({"user": "ann"}, ["registry"]),
        ({"name": "", "value": ""}, ["name", "value"]),
    ],
)
async def test_secrets_that_are_none(own, login, given, fields):
    given = {"name": "hf", "value": TOKEN, **given}
    name, value = given.pop("name"), given.pop("value")
    found = await problems(own.app.controller.secrets.set(ANN, name, value, **given))
    assert [field for field, _, _ in found] == fields
    assert not any(value and value in "".join(problem) for problem in found)
    assert await own.app.controller.secrets.list(ANN) == ()
    assert not login.asked


# --- ports and the node's own network ---


async def test_ports_clash_only_where_the_number_is_really_shared(house):
    house.cluster.able(Capabilities(lan_ports=False))
    for name in ("one", "two"):
        await house.workloads.submit(ANN, service(name, 0, ports=WEB))
    assert len(await house.workloads.list(ADMIN)) == 2
    own_port = service("three", 0, ports=WEB, host_network=True)
    await house.workloads.submit(ADMIN, own_port)
    with pytest.raises(Conflict, match="taken by three") as caught:
        await house.workloads.submit(ADMIN, service("four", 0, ports=WEB, host_network=True))
    assert caught.value.code == "PORT_TAKEN"


async def test_a_port_of_the_same_number_and_another_protocol_is_another_port(house):
    await house.workloads.submit(ANN, service("one", 0, ports=WEB))
    await house.workloads.submit(
        ANN, service("two", 0, ports=(Port("find", 8080, Expose.LAN, "UDP"),))
    )
    with pytest.raises(Conflict, match="UDP port 8080 on the local network is taken by two"):
        await house.workloads.submit(
            ANN, service("three", 0, ports=(Port("x", 8080, Expose.LAN, "UDP"),))
        )


async def test_ports_of_work_that_is_not_podwardens_are_taken(house):
    house.cluster.able(Capabilities(), {("TCP", 8080): "kube-system/traefik"})
    with pytest.raises(Conflict, match="Port 8080 on the local network is taken by kube-system/traefik"):  # fmt: skip
        await house.workloads.submit(ANN, service("one", 0, ports=WEB))
    template = await house.workloads.submit(ANN, service("two", 0, ports=WEB, template="web"))
    assert template.workload.spec.ports[0].expose is Expose.CLUSTER
    assert [row.name for row in await house.workloads.list(ADMIN)] == ["two"]


async def test_the_nodes_network_and_its_devices_are_the_admins_to_give(house):
    for spec in (service("web", 0, host_network=True), service("web", 0, devices=("/dev/dri",))):
        with pytest.raises(Forbidden, match="Only admins"):
            await house.workloads.submit(ANN, spec)
        await house.workloads.submit(ANN, replace_spec(spec))
        await house.reaches("web", State.RUNNING)
        with pytest.raises(Forbidden, match="Only admins"):
            await house.workloads.update(ANN, "web", spec)
        await house.workloads.delete(ANN, "web")
        await eventually(lambda: _gone(house), "web is gone")
    await house.workloads.submit(ADMIN, service("web", 0, host_network=True, devices=("/dev/dri",)))


def replace_spec(spec):
    return service(spec.name, 0)


async def _gone(house):
    return await house.workloads.list(ADMIN) == ()


async def test_its_nodes_ports_let_one_copy_at_a_time_run(house):
    """P-56 in another coat: the new copy cannot have what the old one holds."""
    spec = service("web", 0, ports=WEB, host_network=True)
    await house.workloads.submit(ADMIN, spec)
    await house.reaches("web", State.RUNNING)
    changed = service("web", 0, ports=WEB, host_network=True, env=(("A", "1"),))
    with pytest.raises(Conflict, match="its node's own") as caught:
        await house.workloads.update(ADMIN, "web", changed)
    assert caught.value.code == "UPDATE_NEEDS_DOWNTIME"


async def test_a_volume_of_one_node_lets_one_copy_at_a_time_run_and_a_storage_does_not(house):
    """P-56: stop first with a disk, roll with a storage."""
    await add(house, "media", nfs="nas:/media")
    disk = (Volume("data", "/data", VolumeKind.DISK, 1024),)
    await house.workloads.submit(ANN, service("db", 0, volumes=disk))
    await house.workloads.submit(ANN, uses("media"))
    for name in ("db", "web"):
        await house.reaches(name, State.RUNNING)
    newer = service("db", 0, volumes=disk, env=(("A", "1"),))
    with pytest.raises(Conflict) as caught:
        await house.workloads.update(ANN, "db", newer)
    assert caught.value.code == "UPDATE_NEEDS_DOWNTIME"
    assert (await house.workloads.update(ANN, "db", newer, recreate=True)).how == "recreate"
    assert (
        await house.workloads.update(ANN, "web", uses("media", env=(("A", "1"),)))
    ).how == "surge"


async def test_a_node_of_that_name_has_to_be_known(house):
    house.cluster.nodes["n4"] = gpu_node("n4")
    house.cluster.touch()
    view = await add(house, "late", host="n4:/srv/late")
    assert (view.storage.cluster, view.storage.node) == ("home", "n4")
