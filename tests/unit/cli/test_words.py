from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from podwarden.cli import words


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"),
     (21, "21st"), (22, "22nd"), (101, "101st"), (111, "111th"), (112, "112th"), (1003, "1003rd")],
)  # fmt: skip
def test_ordinals(number, text):
    assert words.ordinal(number) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes")])
def test_plurals(number, text):
    assert words.count(number, "node") == text


@pytest.mark.parametrize(
    ("gpu", "asked", "wanted"),
    [
        (None, "", "no GPU"),
        ({"count": 1}, "", "1 GPU"),
        ({"count": 2}, "", "2 GPUs"),
        ({"count": 1, "vram": "8GB"}, "8 GB asked", "1 GPU, 8 GB"),
        ({"count": 2, "vram": "16GB"}, "16 GB each asked", "2 GPUs, 16 GB each"),
        ({"vram": "6GB", "sharing": "shared"}, "6 GB asked, shared", "6 GB of a GPU"),
        ({"vram": "512Mi", "sharing": "shared"}, "0.5 GB asked, shared", "0.5 GB of a GPU"),
        ({"vram": "${vram}"}, "${vram} asked", "1 GPU, ${vram}"),
    ],
)
def test_what_is_asked_for(gpu, asked, wanted):
    spec = {} if gpu is None else {"gpu": gpu}
    assert words.asked(spec) == asked
    assert words.request(spec) == wanted


def device(node: str, model: str = "RTX A4000") -> dict[str, object]:
    return {"uuid": f"gpu-{node}", "node": node, "index": 0, "model": model, "vram_mib": 16384}


@pytest.mark.parametrize(
    ("nodes", "devices", "text"),
    [
        (["n2"], [], "n2"),
        (["n5"], [device("n5", "GTX 1070")], "n5, GTX 1070 (16 GB asked)"),
        (
            ["n4"],
            [device("n4"), device("n4")],
            "n4, 2 \N{MULTIPLICATION SIGN} RTX A4000 (16 GB asked)",
        ),
        (["n3", "n4"], [device("n3"), device("n4")], "n3, RTX A4000; n4, RTX A4000 (16 GB asked)"),
        (["n3"], [device("n3", "")], "n3, gpu-n3 (16 GB asked)"),
    ],
)
def test_places(nodes, devices, text):
    assert words.place(nodes, devices, {"gpu": {"vram": "16GB"}}) == text


def workload(**fields):
    base = {
        "name": "w", "state": "running", "kind": "service", "spec": {}, "nodes": [], "devices": [],
        "placement": None, "reason": None, "position": None, "starts_at": None, "counts": {},
    }  # fmt: skip
    return {**base, **fields}


REASON = {"code": "DEVICES_IN_USE", "text": "all are in use.", "remedy": ""}


@pytest.mark.parametrize(
    ("fields", "took", "text"),
    [
        ({"nodes": ["n2"]}, 1.44, "w: running on n2, 1.4 s"),
        ({"nodes": ["n2"]}, None, "w: running on n2"),
        ({"state": "queued"}, None, "w: queued"),
        ({"state": "queued", "position": 2, "reason": REASON}, None, "w: queued, 2nd in line. DEVICES_IN_USE: all are in use."),
        ({"state": "failed", "reason": REASON}, 3.0, "w: failed. DEVICES_IN_USE: all are in use."),
        ({"state": "succeeded", "counts": {"done": 40, "total": 40}}, 12.3, "w: succeeded, 40 of 40 done, 12 s"),
        ({"counts": {"done": 3, "failed": 1, "total": 40}, "nodes": ["n4"]}, None, "w: running on n4, 3 of 40 done, 1 failed"),
        ({"state": "starting", "placement": {"slots": [{"node": "n4", "devices": []}], "devices": []}}, None, "w: starting on n4"),
        ({"state": "stopped"}, None, "w: stopped"),
    ],
)  # fmt: skip
def test_the_one_line(fields, took, text):
    assert words.line(workload(**fields), took) == text


def test_a_line_ends_with_every_address_while_it_answers():
    urls = ["http://192.0.2.7:8080", "udp://192.0.2.7:1900"]
    running = workload(state="running", urls=urls)
    assert words.line_with_urls(running) == f"{words.line(running)}   {urls[0]}   {urls[1]}"
    stopped = workload(state="stopped", urls=urls)
    assert words.line_with_urls(stopped) == words.line(stopped)


def test_ages():
    now = datetime(2026, 12, 1, 12, tzinfo=UTC)
    for ago, text in ((3, "3 s"), (42, "42 s"), (600, "10 min"), (7500, "2 h 5 min")):
        assert words.since((now - timedelta(seconds=ago)).isoformat(), now) == text
    assert words.since(None) == "\N{EM DASH}"
    assert words.since((now + timedelta(seconds=5)).isoformat(), now) == "0 s"
