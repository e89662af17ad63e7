"""What belongs to a workload is listed on its main object, so that a part that is gone is missed."""

from __future__ import annotations

from kubemaking import rendered, spec_of

from podwarden.domain.workload import Expose, Port
from podwarden.kube.parts import read_part
from podwarden.kube.presence import presence_of


def _parts(drop=()):
    ports = (Port("http", 80, Expose.LAN),)
    made = rendered(spec_of(ports=ports)).objects
    parts = [read_part(obj["kind"], obj) for obj in made]
    return [part for part in parts if (part.kind, part.name) not in drop], made


def test_what_was_rendered_lacks_nothing() -> None:
    parts, made = _parts()
    assert len(made) >= 3
    assert presence_of("w", parts, "").missing == ()


def test_each_part_that_is_gone_is_named() -> None:
    _, made = _parts()
    for obj in made[:-1]:
        gone = (obj["kind"], obj["metadata"]["name"])
        parts, _ = _parts(drop={gone})
        assert presence_of("w", parts, "").missing == (gone,)


def test_an_object_of_an_older_podwarden_lists_nothing_and_lacks_nothing() -> None:
    _, made = _parts()
    del made[-1]["metadata"]["annotations"]["podwarden.io/parts"]
    assert presence_of("w", [read_part(made[-1]["kind"], made[-1])], "").missing == ()
