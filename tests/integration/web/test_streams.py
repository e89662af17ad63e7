"""Changes and logs as streams over a real connection: resume, heartbeat, bounds, the end."""

from __future__ import annotations

import threading

import httpx
import pytest
from served import Served

from podwarden.web.settings import WebSettings


@pytest.fixture
def client(served, control):
    with httpx.Client(
        base_url=served.url,
        headers={"Authorization": f"Bearer {control.token()}"},
        timeout=60,
        trust_env=False,
    ) as made:
        yield made


def events(lines, most: int) -> list[dict[str, str]]:
    """The next `most` events; comments count as an event without fields."""
    found, fields = [], {}
    for line in lines:
        if line.startswith(":"):
            found.append({})
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            found.append(fields)
            fields = {}
        if len(found) == most:
            break
    return found


def test_a_change_arrives_with_an_id_and_the_stream_stays_alive(served, client, control):
    with client.stream("GET", "/api/v1/feed") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert events(lines, 1) == [{"retry": "1000"}]
        assert events(lines, 2) == [{}, {}], "heartbeats come while nothing happens"
        served.do(lambda: control.feed.publish("workload", "w1"))
        got = next(e for e in iter(lambda: events(lines, 1)[0], None) if e)
        assert got["event"] == "change"
        assert '"w1"' in got["data"]
        assert int(got["id"]) > 0


def test_what_was_missed_comes_first(served, client, control):
    served.do(lambda: [control.feed.publish("workload", f"w{n}") for n in range(5)])
    with client.stream("GET", "/api/v1/feed", headers={"Last-Event-ID": "2"}) as answer:
        got = events(answer.iter_lines(), 4)
    assert [e.get("id") for e in got] == [None, "3", "4", "5"]


@pytest.mark.parametrize("last", ["999999", "nonsense", "-5", "99999999999999999999999999"])
def test_an_unknown_id_leads_to_reset(served, client, control, last):
    served.do(lambda: control.feed.publish("workload", "w"))
    with client.stream("GET", "/api/v1/feed", headers={"Last-Event-ID": last}) as answer:
        got = events(answer.iter_lines(), 2)
    assert '"reset"' in got[1]["data"]


def test_one_user_has_only_so_many_streams_and_gets_them_back(served, client, control):
    held = [client.stream("GET", "/api/v1/feed") for _ in range(3)]
    for each in held:
        each.__enter__()
    answer = client.get("/api/v1/feed")
    assert answer.status_code == 429
    assert answer.json()["code"] == "TOO_MANY"
    assert client.get("/api/v1/gpus").status_code == 200, "other requests go on"
    for each in held:
        each.__exit__(None, None, None)
    streams = served.app.state.context.streams
    for _ in range(600):  # the server notices at its next heartbeat
        if streams.open == 0:
            break
        threading.Event().wait(0.1)
    assert streams.open == 0
    with client.stream("GET", "/api/v1/feed") as again:
        assert again.status_code == 200


def test_a_revoked_token_ends_its_stream(served, client, control):
    with client.stream("GET", "/api/v1/feed") as answer:
        lines = answer.iter_lines()
        events(lines, 1)
        served.do(control.access.secrets.clear)
        assert all(line == "" or line.startswith(":") for line in lines)


def test_a_stop_ends_every_stream_at_once(control):
    with Served(control, WebSettings(heartbeat_s=60)) as served:
        headers = {"Authorization": f"Bearer {control.token()}"}
        with httpx.stream(
            "GET", f"{served.url}/api/v1/feed", headers=headers, trust_env=False, timeout=60
        ) as answer:
            lines = answer.iter_lines()
            events(lines, 1)
            stopper = threading.Thread(target=served.stop)
            stopper.start()
            assert list(lines) == []
            stopper.join(60)
            assert not stopper.is_alive()


def test_logs_are_text_line_by_line_and_closed_when_the_reader_leaves(served, client, control):
    client.post("/api/v1/workloads", json={"template": "web"})
    control.workloads.lines = ["<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "ünïcode"]
    answer = client.get("/api/v1/workloads/web/logs", params={"tail": 2})
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text == "\x1b[31mred\x1b[0m\nünïcode\n"
    with client.stream("GET", "/api/v1/workloads/web/logs", params={"follow": True}) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "<script>alert(1)</script>"
        assert control.workloads.log_open == 1
    for _ in range(600):
        if control.workloads.log_open == 0:
            break
        threading.Event().wait(0.1)
    assert control.workloads.log_open == 0
    assert client.get("/api/v1/workloads/nothing/logs").status_code == 404
    assert served.app.state.context.streams.open == 0
