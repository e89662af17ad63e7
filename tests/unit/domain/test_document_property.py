"""Round trip of every spec that can be, and survival of every mapping that can be given.

Specs are built as dataclasses, not through the reader, so that reader and writer are checked against a
third description of what is valid.
"""

from contextlib import suppress

from hypothesis import HealthCheck as Pace
from hypothesis import given, settings
from hypothesis import strategies as st

from podwarden.domain.document import KEYS, from_document, spec_from_json, spec_to_json, to_document
from podwarden.domain.request import OverBudget, Request, Sharing
from podwarden.domain.sections import GPU_KEYS, HEALTH_KEYS, JOB_KEYS, PORT_KEYS, VOLUME_KEYS
from podwarden.domain.workload import (
    Expose,
    HealthCheck,
    JobSpec,
    Kind,
    Port,
    Priority,
    Spec,
    Update,
    Volume,
    VolumeKind,
)
from podwarden.errors import Invalid

LETTERS = "abcdefghijklmnopqrstuvwxyz"
labels = st.text(LETTERS + "0123456789-", max_size=10).map(lambda t: f"x{t}y")
short_labels = st.text(LETTERS + "0123456789", max_size=8).map(lambda t: f"v{t}")
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
variables = st.text(LETTERS.upper() + "_", min_size=1, max_size=12).filter(
    lambda v: not v.startswith("PW_") and v != "NVIDIA_VISIBLE_DEVICES"
)
sizes = st.integers(1, 1 << 30)
seconds = st.integers(1, 3600)
models = st.sampled_from(["RTX 3090", "A10", "Tesla P40", "RTX A4000", "H100 80GB HBM3"])
computes = st.sampled_from(["", "8.6", ">=7.0", ">=12.1"])
paths = st.lists(
    st.text(LETTERS + ".", min_size=1, max_size=6).map(lambda t: f"p{t}"), min_size=1, max_size=3
)


@st.composite
def requests(draw):
    shared = draw(st.booleans())
    vram = draw(st.integers(2, 8000)) * 128 if shared else draw(st.none() | st.integers(256, 10**6))
    return Request(
        count=1 if shared else draw(st.integers(1, 32)),
        vram_mib=vram,
        sharing=Sharing.SHARED if shared else Sharing.DEDICATED,
        model=tuple(draw(st.lists(models, unique=True))),
        compute=draw(computes),
        encoder_sessions=draw(st.integers(0, 64)),
        over_budget=draw(st.sampled_from(OverBudget)),
    )


@st.composite
def volumes(draw):
    name, path = draw(short_labels), "/" + "/".join(draw(paths))
    kind = draw(st.sampled_from(VolumeKind))
    if kind is VolumeKind.STORAGE:
        return Volume(
            name, path, kind, None, draw(labels), "/".join(draw(paths)), draw(st.booleans())
        )
    return Volume(name, path, kind, draw(sizes if kind is VolumeKind.DISK else st.none() | sizes))


checks = st.builds(
    lambda how, startup, period: HealthCheck(**how, startup_s=startup, period_s=period),
    st.one_of(
        st.builds(lambda p: {"port": p, "http_path": "/health"}, st.integers(1, 65535)),
        st.builds(lambda p: {"port": p}, st.integers(1, 65535)),
        st.builds(lambda c: {"command": tuple(c)}, st.lists(texts, min_size=1, max_size=3)),
    ),
    seconds,
    seconds,
)


@st.composite
def jobs(draw):
    array = draw(
        st.none()
        | st.tuples(st.integers(0, 999), st.integers(0, 200)).map(lambda p: (p[0], p[0] + p[1]))
    )
    gang = array is not None and draw(st.booleans())
    return JobSpec(
        array=array,
        parallelism=draw(st.none() | st.integers(1, 99)) if array and not gang else None,
        gang=gang,
        retries=draw(st.integers(0, 100)),
        time_limit_s=draw(st.none() | seconds),
    )


@st.composite
def specs(draw):
    kind = draw(st.sampled_from(Kind))
    service = kind is Kind.SERVICE
    names = draw(st.lists(variables, unique=True, max_size=6))
    replicas = draw(st.integers(1, 100)) if service else 1
    node, *avoid = draw(st.lists(labels, unique=True, min_size=1, max_size=4))
    job = None if service else draw(jobs())
    alone = replicas == 1 and (job is None or job.array is None)
    return Spec(
        name=draw(labels),
        kind=kind,
        image=draw(st.sampled_from(["a", "a/b:1", "h.x:5000/a@sha256:" + "0" * 64])),
        cluster=draw(st.just("") | labels),
        image_pull_secret=draw(st.just("") | labels),
        command=tuple(draw(st.lists(texts, max_size=3))),
        args=tuple(draw(st.lists(texts, max_size=3))),
        gpu=draw(st.none() | requests()),
        cpu_milli=draw(st.integers(1, 4_096_000)),
        memory_mib=draw(sizes),
        replicas=replicas,
        min_replicas=draw(st.integers(1, replicas)),
        env=tuple(sorted((name, draw(texts)) for name in names[::2])),
        secrets=tuple(sorted((name, draw(labels)) for name in names[1::2])),
        ports=tuple(draw(st.lists(
            st.builds(Port, short_labels, st.integers(1, 65535), st.sampled_from(Expose), st.sampled_from(["TCP", "UDP"])),
            max_size=3, unique_by=(lambda p: p.name, lambda p: p.port),
        ))),
        volumes=tuple(draw(st.lists(volumes(), max_size=3, unique_by=(lambda v: v.name, lambda v: v.path)))),
        devices=tuple(draw(st.lists(st.sampled_from(["/dev/dri", "/dev/video0", "/dev/bus/usb/001"]), unique=True))),
        host_network=alone and draw(st.booleans()),
        health=draw(st.none() | checks),
        shm_mib=draw(st.none() | sizes),
        priority=draw(st.sampled_from(Priority)),
        preemptible=draw(st.booleans()),
        hours=draw(st.sampled_from(["", "22:00-07:00", "00:00-23:59"])),
        node=draw(st.sampled_from(["", node])),
        avoid=tuple(avoid),
        update=draw(st.sampled_from(Update)) if service else Update.AUTO,
        surge_wait_s=draw(seconds) if service else 600,
        idle_stop_s=draw(st.none() | seconds) if service else None,
        notify=tuple(draw(st.lists(labels, unique=True, max_size=2))),
        job=job,
        template=draw(st.just("") | labels),
        annotations=tuple(draw(st.just(()) | texts.map(lambda t: (("simulator.podwarden.io/fail", t),)))),
    )  # fmt: skip


@given(specs())
def test_every_spec_survives_being_written_and_read(spec):
    document = to_document(spec)
    assert from_document(document) == spec
    assert spec_from_json(spec_to_json(spec)) == spec


@given(specs())
def test_the_canonical_file_is_a_fixed_point_and_minimal(spec):
    document = to_document(spec)
    assert to_document(from_document(document)) == document
    needed = {"name", "kind", "image", "resources"}
    for key in set(document) - needed:
        less = {k: v for k, v in document.items() if k != key}
        with suppress(Invalid):  # it was needed
            assert from_document(less) != spec, f"{key} says nothing"


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
words = st.sampled_from(
    sorted({*KEYS, *GPU_KEYS, *PORT_KEYS, *VOLUME_KEYS, *HEALTH_KEYS, *JOB_KEYS, "cpu", "memory"})
)
anything = st.recursive(
    scalars | st.sampled_from(["8GB", "shared", "job", "1-9", "/data", "cache", "10m", "a", "max"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=4) | st.integers(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


# How fast a busy machine makes examples says nothing about the code.
@settings(max_examples=300, suppress_health_check=[Pace.too_slow])
@given(st.dictionaries(words, anything, max_size=8), st.booleans())
def test_any_mapping_gives_a_spec_or_named_problems(document, named):
    if named:
        document = {**document, "name": "a", "image": "b"}
    spec, found = None, []
    try:
        spec = from_document(document)
    except Invalid as error:
        found = error.problems
    assert (spec is None) == bool(found)
    for problem in found:
        assert problem.field
        assert problem.fix
        assert str(problem).isprintable()
        assert len(problem.value) <= 60
    if spec is not None:
        assert from_document(to_document(spec)) == spec
