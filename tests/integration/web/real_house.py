"""A control plane on a real database with a cluster in memory, behind the API."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
from cluster_double import Cluster, give, gpu_node

from podwarden import bootstrap
from podwarden.domain.cluster import Cluster as ClusterRow
from podwarden.settings import Settings
from podwarden.web.app import create_app
from podwarden.web.settings import WebSettings

PASSWORD = "a long password"


async def _probe(text):
    return "https://127.0.0.3:6443", "v1.37.2"


class House:
    def __init__(self, app, cluster) -> None:
        self.app = app
        self.cluster = cluster
        self.web = create_app(app.controller, WebSettings(heartbeat_s=0.5))

    def client(self, secret: str = "") -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.web),
            base_url="http://127.0.0.1:8080",
            headers=headers,
            timeout=20,
        )

    async def login(self, name: str = "admin", password: str = PASSWORD) -> httpx.AsyncClient:
        async with self.client() as nobody:
            answer = await nobody.post("/api/v1/session", json={"name": name, "password": password})
        assert answer.status_code == 201, answer.text
        return self.client(answer.json()["token"])


@asynccontextmanager
async def real_house(tmp_path):
    cluster = Cluster(gpu_node("n1", 24), gpu_node("n2", 8, 12), gpu_node("n3"))
    settings = Settings(data=tmp_path / "data", admin_password=PASSWORD)
    app = bootstrap.build(
        settings, connect=lambda name, text: cluster, render=give, probe=_probe, holder="one"
    )
    row = ClusterRow("home", "https://127.0.0.1:6443", datetime.now(UTC), simulated=True)
    await app.store.write(lambda unit: unit.clusters.add(row, "kubeconfig"))
    await app.start()
    try:
        yield House(app, cluster)
    finally:
        await app.stop()
