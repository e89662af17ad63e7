"""What fits: the answers for many equal nodes are those for all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from controlmaking import NOW, device, node

from podwarden.control import fits
from podwarden.domain.inventory import Holder, Holding
from podwarden.domain.placement import Claimant, Snapshot
from podwarden.domain.request import Request


def many(count: int, vram_gb: int = 8, **changes):
    return [
        node(
            f"n{vram_gb}-{i}",
            device(f"n{vram_gb}-{i}", f"g{vram_gb}-{i}", vram_gb * 1024),
            **changes,
        )
        for i in range(count)
    ]


def wish(name: str, gb: int | None, slots: int = 1, **changes) -> Claimant:
    request = Request(vram_mib=gb * 1024) if gb else None
    base = Claimant(name, name, True, 500, NOW, request, 1000, 1024, slots, slots)
    return replace(base, **changes)


NODES = (*many(30), *many(20, 24), *many(9, 12, ready=False))
HELD = tuple(
    Holding(f"g24-{i}", f"n24-{i}", 0, 64, Holder("vllm", "w", endless=True)) for i in range(20)
)
WISHES = [
    wish("small", 8), wish("large", 24), wish("away", 12), wish("never", 80), wish("none", None),
    wish("wide", 8, slots=25), wish("too-wide", 24, slots=21),
]  # fmt: skip


@pytest.mark.parametrize("holdings", [(), HELD], ids=["empty", "busy"])
def test_thinning_changes_no_verdict(holdings):
    view = Snapshot("home", NOW, nodes=NODES, holdings=holdings)
    empty = replace(view, holdings=())
    asked = {claimant.name: claimant for claimant in WISHES}
    together = {f.name: f for f in fits._judge("home", view, empty, asked, NOW)}
    pinned = wish("pinned", None, nodes=frozenset({"n8-3"}), nodes_why="node: n8-3")
    whole = {f.name: f for f in fits._judge("home", view, empty, {**asked, "pinned": pinned}, NOW)}
    for name, fit in together.items():
        other = whole[name]
        assert fit.never == other.never, name
        for thin, full in ((fit.now, other.now), (fit.empty, other.empty)):
            assert (thin.placement is None) == (full.placement is None), name
            assert (thin.reason is None) == (full.reason is None), name
            if thin.reason is not None:
                assert thin.reason.code == full.reason.code, name
    assert whole["pinned"].now.placement.slots[0].node == "n8-3"
    assert together["never"].never
    assert (together["large"].now.placement is None) == bool(holdings)
