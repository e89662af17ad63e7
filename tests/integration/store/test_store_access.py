"""Users, tokens, secrets, clusters: what may be known of them, and what may not."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from statistics import median

import pytest
from nouns import NOON
from sqlalchemy import text

from podwarden.domain.access import Role, User
from podwarden.domain.cluster import Cluster
from podwarden.errors import Conflict, Invalid, NotFound, Unavailable
from podwarden.store.tokens import PREFIX

PASSWORD = "correct horse"


async def add_bo(store, name="bo", role=Role.MEMBER):
    return await store.write(lambda unit: unit.users.add(name, role, PASSWORD))


async def test_users_from_first_to_last(store, clock):
    assert await store.read(lambda unit: unit.users.count()) == 0
    user = await add_bo(store)
    assert user == User("bo", Role.MEMBER, clock.now)
    await add_bo(store, "ada", Role.ADMIN)
    assert await store.read(lambda unit: unit.users.get("bo")) == user
    assert [u.name for u in await store.read(lambda unit: unit.users.list())] == ["ada", "bo"]
    assert await store.read(lambda unit: unit.users.count()) == 2
    with pytest.raises(Conflict, match="bo"):
        await add_bo(store)
    await store.write(lambda unit: unit.users.remove("bo"))
    for gone in (
        lambda unit: unit.users.get("bo"),
        lambda unit: unit.users.remove("bo"),
        lambda unit: unit.users.set_password("bo", PASSWORD),
        lambda unit: unit.users.set_disabled("bo", disabled=True),
    ):
        with pytest.raises(NotFound):
            await store.write(gone)


async def test_verify(store):
    user = await add_bo(store)

    async def verify(name, password):
        return await store.read(lambda unit: unit.users.verify(name, password))

    assert await verify("bo", PASSWORD) == user
    for name, password in [
        ("bo", "wrong horse"),
        ("bo", ""),
        ("bo", PASSWORD + "\0"),
        ("bo", "x" * 100_000),
        ("bo", "\ud800"),
        ("eve", PASSWORD),
        ("", ""),
        ("b\0o", PASSWORD),
    ]:
        assert await verify(name, password) is None
    await store.write(lambda unit: unit.users.set_password("bo", "another one"))
    assert await verify("bo", PASSWORD) is None
    assert await verify("bo", "another one") == user
    await store.write(lambda unit: unit.users.set_disabled("bo", disabled=True))
    assert await verify("bo", "another one") is None


async def test_an_unknown_user_takes_as_long_as_a_wrong_password(store):
    await add_bo(store)

    def timed(name):
        def work(unit):
            begun = time.thread_time()
            unit.users.verify(name, "wrong horse")
            return time.thread_time() - begun

        return work

    await store.read(timed("eve"))  # makes the hash that belongs to nobody
    known, unknown = [], []
    for _ in range(7):
        known.append(await store.read(timed("bo")))
        unknown.append(await store.read(timed("eve")))
    assert 0.5 < median(unknown) / median(known) < 2


@pytest.mark.parametrize("password", ["", "seven77", "x" * 1025])
async def test_bad_passwords_are_refused_without_repeating_them(store, password):
    await add_bo(store)
    for work in (
        lambda unit: unit.users.add("ada", Role.ADMIN, password),
        lambda unit: unit.users.set_password("bo", password),
    ):
        with pytest.raises(Invalid) as caught:
            await store.write(work)
        assert caught.value.problems[0].field == "password"
        assert not password or password not in caught.value.message
    assert await store.read(lambda unit: unit.users.count()) == 1


@pytest.mark.parametrize(
    "name", ["", "Bo", "-a", "a-", "a b", "a.b", "ä", "x" * 64, "a\0", "a\n", "٣"]
)
async def test_bad_names_are_refused(store, name):
    for work in (
        lambda unit: unit.users.add(name, Role.ADMIN, PASSWORD),
        lambda unit: unit.secrets.set(name, "v", "bo"),
        lambda unit: unit.clusters.add(Cluster(name, "https://a", NOON), "k"),
    ):
        with pytest.raises(Invalid) as caught:
            await store.write(work)
        assert caught.value.problems[0].field == "name"


async def test_tokens(store, clock):
    user = await add_bo(store)
    token, secret = await store.write(
        lambda unit: unit.tokens.create("bo", "laptop", timedelta(hours=1))
    )
    assert secret.startswith(PREFIX)
    assert len(secret) > 40
    assert token.expires_at == clock.now + timedelta(hours=1)
    assert await store.read(lambda unit: unit.tokens.find(secret)) == (token, user)
    for wrong in (
        "",
        PREFIX,
        secret[:-1],
        secret + "x",
        secret.upper(),
        token.id,
        "pw_\ud800",
        "pw_\0",
    ):
        assert await store.read(lambda unit, wrong=wrong: unit.tokens.find(wrong)) is None
    clock.forward(minutes=59, seconds=59)
    assert await store.read(lambda unit: unit.tokens.find(secret)) is not None
    clock.forward(seconds=1)
    assert await store.read(lambda unit: unit.tokens.find(secret)) is None
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.tokens.create("eve", "x", None))
    with pytest.raises(Invalid, match="ttl"):
        await store.write(lambda unit: unit.tokens.create("bo", "x", timedelta(0)))
    with pytest.raises(Invalid, match="label"):
        await store.write(lambda unit: unit.tokens.create("bo", "x" * 101, None))


async def test_tokens_end_with_their_user_and_by_hand(store, clock):
    await add_bo(store)
    _, old = await store.write(
        lambda unit: unit.tokens.create("bo", "old", timedelta(minutes=1), True)
    )
    clock.forward(minutes=2)
    kept, secret = await store.write(lambda unit: unit.tokens.create("bo", "kept", None))
    assert [t.label for t in await store.read(lambda unit: unit.tokens.list("bo"))] == ["kept"]
    assert await store.read(lambda unit: unit.tokens.find(old)) is None
    await store.write(lambda unit: unit.users.set_disabled("bo", disabled=True))
    assert await store.read(lambda unit: unit.tokens.find(secret)) is None
    await store.write(lambda unit: unit.users.set_disabled("bo", disabled=False))
    assert await store.read(lambda unit: unit.tokens.get(kept.id)) == kept
    await store.write(lambda unit: unit.tokens.revoke(kept.id))
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.tokens.revoke(kept.id))
    with pytest.raises(NotFound):
        await store.read(lambda unit: unit.tokens.get(kept.id))
    _, secret = await store.write(lambda unit: unit.tokens.create("bo", "new", None))
    await store.write(lambda unit: unit.users.remove("bo"))
    assert await store.read(lambda unit: unit.tokens.find(secret)) is None
    assert await store.read(lambda unit: unit.tokens.list()) == ()


async def test_the_use_of_a_token_is_noted_once_a_minute(store, clock):
    await add_bo(store)
    token, secret = await store.write(lambda unit: unit.tokens.create("bo", "x", None))

    async def used():
        await store.authenticate(secret)
        return (await store.read(lambda unit: unit.tokens.get(token.id))).last_used_at

    first = clock.now
    assert await used() == first
    clock.forward(seconds=59)
    assert await used() == first
    clock.forward(seconds=1)
    assert await used() == clock.now
    clock.forward(seconds=61)
    await store.write(lambda unit: unit.tokens.find(secret))  # a write notes it by itself
    assert (await store.read(lambda unit: unit.tokens.get(token.id))).last_used_at == clock.now
    assert await store.authenticate("pw_nothing") is None


async def test_clusters_keep_kubeconfigs_to_themselves(store, clock):
    cluster = Cluster("home", "https://10.0.0.1:6443", NOON, "v1.37.2", True, ("no sharing", "é"))
    await store.write(lambda unit: unit.clusters.add(cluster, "kube: secret"))
    assert await store.read(lambda unit: unit.clusters.get("home")) == cluster
    assert await store.read(lambda unit: unit.clusters.list()) == (cluster,)
    assert await store.read(lambda unit: unit.clusters.kubeconfig("home")) == "kube: secret"
    with pytest.raises(Conflict, match="home"):
        await store.write(lambda unit: unit.clusters.add(cluster, "other"))
    newer = replace(cluster, version="v1.38.0", notes=())
    await store.write(lambda unit: unit.clusters.save(newer))
    assert await store.read(lambda unit: unit.clusters.kubeconfig("home")) == "kube: secret"
    await store.write(lambda unit: unit.clusters.save(newer, "kube: new"))
    assert await store.read(lambda unit: unit.clusters.get("home")) == newer
    assert await store.read(lambda unit: unit.clusters.kubeconfig("home")) == "kube: new"
    await store.write(lambda unit: unit.clusters.remove("home"))
    for gone in (
        lambda unit: unit.clusters.get("home"),
        lambda unit: unit.clusters.kubeconfig("home"),
        lambda unit: unit.clusters.remove("home"),
        lambda unit: unit.clusters.save(newer),
    ):
        with pytest.raises(NotFound):
            await store.write(gone)


async def test_secrets(store, open_store, clock):
    await store.write(lambda unit: unit.secrets.set("hf", "hf_é\0\n", "bo"))
    other = open_store()
    assert await other.read(lambda unit: unit.secrets.get("hf")) == "hf_é\0\n"
    clock.forward(seconds=5)
    await store.write(lambda unit: unit.secrets.set("hf", "second", "ada"))
    assert await other.read(lambda unit: unit.secrets.get("hf")) == "second"
    (listed,) = await other.read(lambda unit: unit.secrets.list())
    assert (listed.name, listed.owner, listed.changed_at) == ("hf", "bo", clock.now)
    assert await other.read(lambda unit: unit.secrets.names()) == ("hf",)
    await store.write(lambda unit: unit.secrets.delete("hf"))
    with pytest.raises(NotFound):
        await store.read(lambda unit: unit.secrets.get("hf"))
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.secrets.delete("hf"))
    for value in ("", "x" * (256 * 1024 + 1)):
        with pytest.raises(Invalid) as caught:
            await store.write(lambda unit, value=value: unit.secrets.set("hf", value, "bo"))
        assert caught.value.problems[0].value == ""


async def test_a_value_copied_to_another_row_does_not_decrypt(store):
    def swap(unit):
        unit.secrets.set("mine", "value of mine", "eve")
        unit.secrets.set("yours", "value of yours", "bo")
        unit.secrets._connection.execute(
            text(
                "UPDATE secrets SET value = (SELECT value FROM secrets WHERE name = 'yours') WHERE name = 'mine'"
            )
        )

    await store.write(swap)
    with pytest.raises(Unavailable, match=r"secrets\.key"):
        await store.read(lambda unit: unit.secrets.get("mine"))


async def test_a_made_secret_remembers_its_workload_and_takes_no_name_that_exists(store):
    await store.write(lambda unit: unit.secrets.make("pg-password", "made-1", "bo", "pg"))
    await store.write(lambda unit: unit.secrets.set("hf", "v", "bo"))
    listed = await store.read(lambda unit: unit.secrets.list())
    assert [(s.name, s.owner, s.made_for) for s in listed] == [
        ("hf", "bo", ""),
        ("pg-password", "bo", "pg"),
    ]
    for name in ("hf", "pg-password"):
        with pytest.raises(Conflict):
            await store.write(lambda unit, name=name: unit.secrets.make(name, "x", "eve", "pg"))
    assert await store.read(lambda unit: unit.secrets.get("pg-password")) == "made-1"
    await store.write(lambda unit: unit.secrets.set("pg-password", "changed", "bo"))
    assert (await store.read(lambda unit: unit.secrets.list()))[1].made_for == "pg"


async def test_nothing_secret_is_readable_in_the_database(store, database_url, tmp_path, postgres):
    await add_bo(store)
    _, secret = await store.write(lambda unit: unit.tokens.create("bo", "x", None))
    await store.write(lambda unit: unit.secrets.set("hf", "hf_topsecret", "bo"))
    await store.write(
        lambda unit: unit.clusters.add(Cluster("home", "https://a", NOON), "kube_topsecret")
    )
    if database_url.startswith("sqlite"):
        dump = b"".join(file.read_bytes() for file in (tmp_path / "data").glob("podwarden.db*"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "data").iterdir()}
        assert set(modes.values()) == {0o600}
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    else:
        dump = postgres.dump(database_url)
    assert b"laptop" not in dump
    assert b"https://a" in dump  # it is the right dump
    for word in (PASSWORD, secret, secret.removeprefix(PREFIX), "topsecret"):
        assert word.encode() not in dump
    assert "topsecret" not in repr(store) + repr(vars(store)) + repr(store._means)
