"""A bare client of the Kubernetes API for tests: plain JSON, no code of `podwarden`, so that a test sees what is there."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import yaml

Json = dict[str, Any]


class RawApi:
    """Paths are those of the API, such as `/api/v1/namespaces/default/pods`. Answers other than 2xx raise."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        with (
            tempfile.NamedTemporaryFile() as pair
        ):  # the ssl module reads client certificates from files only
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]))
            pair.flush()
            context.load_cert_chain(pair.name)
        self.server: str = cluster["server"]
        self.http = httpx.Client(base_url=self.server, verify=context, timeout=30, trust_env=False)

    def close(self) -> None:
        self.http.close()

    def get(self, path: str, **query: str) -> Json:
        return self._json(self.http.get(path, params=query))

    def items(self, path: str, **query: str) -> list[Json]:
        return self.get(path, **query)["items"]

    def find(self, path: str) -> Json | None:
        """The object, or None where there is none."""
        answer = self.http.get(path)
        return None if answer.status_code == 404 else self._json(answer)

    def create(self, path: str, thing: Json) -> Json:
        return self._json(self.http.post(path, json=thing))

    def merge(self, path: str, patch: Json) -> Json:
        """A JSON merge patch: given fields are replaced, null removes."""
        return self._json(
            self.http.patch(
                path,
                content=json.dumps(patch),
                headers={"Content-Type": "application/merge-patch+json"},
            )
        )

    def delete(self, path: str, **query: str) -> None:
        """Asks for deletion; what is gone already is fine."""
        answer = self.http.delete(path, params=query)
        if answer.status_code != 404:
            self._json(answer)

    def text(self, path: str, **query: str) -> str:
        answer = self.http.get(path, params=query)
        self._check(answer)
        return answer.text

    def watch(self, path: str, seconds: int, **query: str) -> Iterator[Json]:
        """Events from now on, until `seconds` have passed."""
        query = {"watch": "true", "timeoutSeconds": str(seconds), **query}
        with self.http.stream("GET", path, params=query, timeout=seconds + 10) as answer:
            for line in answer.iter_lines():
                yield json.loads(line)

    @classmethod
    def _json(cls, answer: httpx.Response) -> Json:
        cls._check(answer)
        return answer.json()

    @staticmethod
    def _check(answer: httpx.Response) -> None:
        if not answer.is_success:
            request = answer.request
            raise AssertionError(
                f"{request.method} {request.url.path}: {answer.status_code} {answer.text[:500]}"
            )
