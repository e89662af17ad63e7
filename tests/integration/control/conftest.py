"""A whole control plane on a real database and a cluster in memory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cluster_double import Cluster, give, gpu_node
from house import House

from podwarden import bootstrap
from podwarden.domain.cluster import Cluster as ClusterRow
from podwarden.settings import Settings


@pytest.fixture
def cluster():
    return Cluster(gpu_node("n1", 24), gpu_node("n2", 8, 12), gpu_node("n3"))


@pytest.fixture
def start(tmp_path: Path, cluster):
    """A context manager that runs one more PodWarden on the same data."""

    @asynccontextmanager
    async def run(*, holder="", lease=6.0, data="data", to=None, url="", **seams):
        settings = Settings(
            data=tmp_path / data,
            database_url=url,
            lease_seconds=lease,
            admin_password="a long password",
        )
        app = bootstrap.build(
            settings, connect=lambda name, text: to or cluster, render=give, probe=_probe, holder=holder,
            **seams,
        )  # fmt: skip
        known = await app.store.read(lambda unit: unit.clusters.list())
        if not known and data == "data":
            row = ClusterRow("home", "https://127.0.0.1:6443", datetime.now(UTC), simulated=True)
            await app.store.write(lambda unit: unit.clusters.add(row, "kubeconfig"))
        await app.start()
        try:
            yield House(app, cluster)
        finally:
            await app.stop()

    return run


async def _probe(text):
    return "https://127.0.0.3:6443", "v1.37.2"


@pytest.fixture
async def house(start):
    async with start() as running:
        await running.acts()
        yield running
