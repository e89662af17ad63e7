"""Lines that people saw give the code they must give, quickly, whatever stands around them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from podwarden.control import signs

CASES = yaml.safe_load(Path(__file__).with_name("signs.yaml").read_text(encoding="utf-8"))
NOISE = ["starting", "loading model weights", "listening on :8080"]


def code(sign):
    return sign.code if sign is not None else ""


@pytest.mark.parametrize("case", CASES["log"], ids=lambda c: f"{c['code']}: {c['lines'][:1]}")
def test_a_log(case):
    lines = case["lines"]
    assert code(signs.of_log(lines)) == case["code"]
    assert code(signs.of_log([*NOISE, *lines, "exiting"])) == case["code"]
    dressed = [f"\x1b[31m2026-01-01 ERROR {line}\x1b[0m" for line in lines]
    assert code(signs.of_log(dressed)) == case["code"]


@pytest.mark.parametrize("case", CASES["pull"], ids=lambda c: c["line"][:50])
def test_a_registry(case):
    sign = signs.of_pull(case["line"])
    assert code(sign) == case["code"]
    assert case["says"] in sign.text
    assert sign.remedy.endswith(".")


@pytest.mark.parametrize("case", CASES["node"], ids=lambda c: c["line"][:50])
def test_a_node(case):
    assert code(signs.of_node(case["line"])) == case["code"]


def test_a_hostile_log_costs_little():
    lines = ["a" * 1_000_000, "CUDA " * 200_000, "/dev/shm " * 100_000, "\x00\u202e" * 50_000] * 10
    started = time.process_time()
    signs.of_log(lines)
    signs.of_pull(lines[0])
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, ""),
        (3, "exit code 3"),
        (127, "exit code 127 (its command is not in the image)"),
        (137, "exit code 137 (it was killed)"),
    ],
)
def test_exit_codes(number, words):
    assert signs.exit_words(number) == words
