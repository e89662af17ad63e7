"""The workload file: every key, every rule, hostile input. One table of what is accepted, one of what is refused."""

import json

import pytest

from podwarden.domain.document import (
    KEYS,
    MOST_JSON,
    from_document,
    image_fault,
    spec_from_json,
    spec_to_json,
    to_document,
)
from podwarden.domain.request import OverBudget, Request, Sharing
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

PLAIN = {"name": "a", "image": "b"}
JOB = {**PLAIN, "kind": "job"}


def problems(document):
    with pytest.raises(Invalid) as caught:
        from_document(document)
    return [(p.field, p.value, p.fix) for p in caught.value.problems]


def test_the_whole_file_of_the_documentation():
    spec = from_document(
        {
            "name": "ollama", "kind": "service", "cluster": "home", "image": "ollama/ollama:0.9",
            "image_pull_secret": "hub", "command": [], "args": [],
            "gpu": {"count": 1, "vram": "8GB", "sharing": "shared", "model": [], "compute": "",
                    "encoder_sessions": 0, "over_budget": "restart"},
            "resources": {"cpu": 2, "memory": "8Gi"}, "replicas": 1, "min_replicas": 1,
            "env": {"OLLAMA_KEEP_ALIVE": "24h", "DEBUG": True, "N": 3, "EMPTY": None},
            "secrets": {"HF_TOKEN": "my-hf-token"},
            "ports": [{"name": "http", "port": 11434, "expose": "lan"}],
            "volumes": [{"name": "models", "path": "/models", "kind": "cache", "size": "50Gi"}],
            "devices": ["/dev/dri"], "health": {"http": {"path": "/", "port": 11434}, "startup": "10m"},
            "shm": "2Gi", "priority": "normal", "preemptible": False, "hours": "", "node": "", "avoid": [],
            "update": "auto", "surge_wait": "10m", "idle_stop": "", "notify": [],
        }
    )  # fmt: skip
    assert spec == Spec(
        name="ollama", kind=Kind.SERVICE, cluster="home", image="ollama/ollama:0.9", image_pull_secret="hub",
        gpu=Request(1, 8192, Sharing.SHARED), cpu_milli=2000, memory_mib=8192,
        env=(("DEBUG", "true"), ("EMPTY", ""), ("N", "3"), ("OLLAMA_KEEP_ALIVE", "24h")),
        secrets=(("HF_TOKEN", "my-hf-token"),), ports=(Port("http", 11434, Expose.LAN),),
        volumes=(Volume("models", "/models", VolumeKind.CACHE, 51200),), devices=("/dev/dri",),
        health=HealthCheck(port=11434, http_path="/"), shm_mib=2048,
    )  # fmt: skip


def test_the_shortest_file_and_what_is_written_back():
    spec = from_document(PLAIN)
    assert spec == Spec(name="a", kind=Kind.SERVICE, image="b")
    assert to_document(spec) == {
        "name": "a",
        "kind": "service",
        "image": "b",
        "resources": {"cpu": 1, "memory": "1Gi"},
    }


def test_what_is_written_back_has_every_set_key_in_order():
    document = {
        "name": "a", "kind": "service", "cluster": "c", "image": "b:1", "image_pull_secret": "s",
        "command": ["x"], "args": ["y\nz"],
        "gpu": {"count": 2, "vram": "24GB", "model": ["RTX 3090"], "compute": ">=8.6", "encoder_sessions": 1, "over_budget": "evict"},
        "resources": {"cpu": "500m", "memory": "500Mi"}, "replicas": 3, "min_replicas": 2, "env": {"A": "1"},
        "secrets": {"B": "s"}, "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "web", "port": 80, "expose": "lan"}],
        "volumes": [{"name": "m", "path": "/m", "kind": "storage", "storage": "media", "subpath": "a/b", "read_only": True},
                    {"name": "d", "path": "/d", "kind": "disk", "size": "1Gi"}],
        "devices": ["/dev/dri"], "health": {"command": ["true"], "startup": "1h", "period": "30s"}, "shm": "1Gi",
        "priority": "high", "preemptible": True, "hours": "22:00-07:00", "node": "n1", "avoid": ["n2"],
        "update": "recreate", "surge_wait": "1m", "idle_stop": "1h30m", "notify": ["me"], "template": "t",
        "annotations": {"simulator.podwarden.io/run-seconds": "3"},
    }  # fmt: skip
    written = to_document(from_document(document))
    assert written == document
    assert list(written) == [key for key in KEYS if key in document]
    job = {
        **JOB,
        "resources": {"cpu": 1, "memory": "1Gi"},
        "job": {"array": "1-250", "parallelism": 4, "time_limit": "2h", "retries": 0},
    }
    assert to_document(from_document(job)) == job


@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        ({"gpu": {}}, "gpu", Request()),
        ({"gpu": {"vram": 16}}, "gpu", Request(vram_mib=16384)),
        ({"gpu": {"vram": "6.1GB", "sharing": "shared"}}, "gpu", Request(1, 6272, Sharing.SHARED)),
        ({"gpu": {"model": "NVIDIA GeForce RTX 3090"}}, "gpu", Request(model=("RTX 3090",))),
        ({"gpu": {"model": ["A10", "NVIDIA A10", "nvidia nvidia A10"]}}, "gpu", Request(model=("A10",))),
        ({"gpu": {"compute": 8.6}}, "gpu", Request(compute="8.6")),
        ({"gpu": {"compute": ">= 9"}}, "gpu", Request(compute=">=9.0")),
        ({"gpu": {"compute": "==8.9"}}, "gpu", Request(compute="8.9")),
        ({"gpu": {"over_budget": "warn"}}, "gpu", Request(over_budget=OverBudget.WARN)),
        ({"gpu": None}, "gpu", None),
        ({"ports": [{"port": 80}]}, "ports", (Port("port-80", 80),)),
        ({"ports": [{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}]}, "ports", (Port("a", 53), Port("b", 53, protocol="UDP"))),
        ({"volumes": [{"name": "x", "path": "/data/", "kind": "scratch"}]}, "volumes", (Volume("x", "/data", VolumeKind.SCRATCH),)),
        ({"volumes": [{"name": "x", "path": "/d", "kind": "cache", "storage": "", "read_only": False}]}, "volumes", (Volume("x", "/d", VolumeKind.CACHE),)),
        ({"volumes": [{"name": "x", "path": "/d", "kind": "storage", "storage": "m", "subpath": "/a/b/"}]}, "volumes", (Volume("x", "/d", VolumeKind.STORAGE, storage="m", subpath="a/b"),)),
        ({"health": {"tcp": {"port": 5}}}, "health", HealthCheck(port=5)),
        ({"health": {"http": {}}, "ports": [{"port": 81}]}, "health", HealthCheck(port=81, http_path="/")),
        ({"health": {"command": ["cat", "/ready"]}}, "health", HealthCheck(command=("cat", "/ready"))),
        ({"priority": "critical"}, "priority", Priority.CRITICAL),
        ({"update": "surge"}, "update", Update.SURGE),
        ({"preemptible": "True"}, "preemptible", True),
        ({"resources": {}}, "cpu_milli", 1000),
        ({"idle_stop": "30m"}, "idle_stop_s", 1800),
    ],
)  # fmt: skip
def test_accepted(more, field, value):
    spec = from_document({**PLAIN, **more})
    assert getattr(spec, field) == value
    assert from_document(to_document(spec)) == spec


@pytest.mark.parametrize(
    ("job", "spec"),
    [
        (None, JobSpec()), ({}, JobSpec()), ({"array": "0-3", "gang": True}, JobSpec((0, 3), gang=True)),
        ({"array": "1-100000", "parallelism": "max"}, JobSpec((1, 100_000))), ({"array": "7-7"}, JobSpec((7, 7))),
        ({"array": "1-9", "parallelism": 3, "retries": 0, "time_limit": "2h"}, JobSpec((1, 9), 3, False, 0, 7200)),
        ({"array": ""}, JobSpec()),
    ],
)  # fmt: skip
def test_jobs(job, spec):
    read = from_document({**JOB, "job": job})
    assert read.job == spec
    assert from_document(to_document(read)) == read


REFUSED = [
    ({"gpu": {"vram": "16 gigs"}}, "gpu.vram", "16 gigs", "a VRAM size such as 16GB"),
    ({"gpu": {"vram": "-1GB"}}, "gpu.vram", "-1GB", "a VRAM size"),
    ({"gpu": {"vram": "1e30GB"}}, "gpu.vram", "1e30GB", "a VRAM size"),
    ({"gpu": {"vram": [1]}}, "gpu.vram", "", "a VRAM size"),
    ({"gpu": {"vram": 10**5000}}, "gpu.vram", "a very large number", "a VRAM size"),
    ({"gpu": {"count": 0}}, "gpu.count", "0", "from 1 to 32; leave gpu out"),
    ({"gpu": {"count": -1}}, "gpu.count", "-1", "from 1 to 32"),
    ({"gpu": {"count": 33}}, "gpu.count", "33", "from 1 to 32"),
    ({"gpu": {"count": True}}, "gpu.count", "true", "from 1 to 32"),
    ({"gpu": {"sharing": "shared"}}, "gpu.vram", "", "a shared GPU needs a budget"),
    ({"gpu": {"sharing": "shared", "vram": 6, "count": 2}}, "gpu.count", "2", "a shared workload uses one GPU"),
    ({"gpu": {"sharing": "both"}}, "gpu.sharing", "both", "one of dedicated, shared"),
    ({"gpu": {"model": ["a\u202eb"]}}, "gpu.model[0]", "a\ufffdb", "without control"),
    ({"gpu": {"model": 'x"; true'}}, "gpu.model", 'x"; true', "a GPU model such as"),
    ({"gpu": {"compute": "new"}}, "gpu.compute", "new", "a compute capability"),
    ({"gpu": {"compute": "<8.0"}}, "gpu.compute", "<8.0", "a compute capability"),
    ({"gpu": {"encoder_sessions": 65}}, "gpu.encoder_sessions", "65", "from 0 to 64"),
    ({"gpu": {"vramm": "8GB"}}, "gpu.vramm", "", "did you mean vram?"),
    ({"gpu": 1}, "gpu", "1", "a section with keys: count"),
    ({"vram": "8GB"}, "vram", "", "write gpu.vram"),
    ({"environment": {}}, "environment", "", "write env"),
    ({"name": "My_App"}, "name", "My_App", "such as my-app"),
    ({"name": "a" * 41}, "name", "a" * 41, "at most 40"),
    ({"name": "9a"}, "name", "9a", "starting with a letter"),
    ({"name": "a-"}, "name", "a-", "such as a"),
    ({"name": "a\u202eb"}, "name", "a\ufffdb", "invisible"),
    ({"name": "\uff41"}, "name", "\uff41", "lower-case letters"),
    ({"name": None}, "name", "", "is missing"),
    ({"name": ""}, "name", '""', "is missing"),
    ({"image": "a b"}, "image", "a b", "without spaces"),
    ({"image": None}, "image", "", "is missing"),
    ({"image": ["x"]}, "image", "", "a text"),
    ({"image": "Ollama/Ollama"}, "image", "Ollama/Ollama", "lower-case: ollama/ollama"),
    ({"kind": "cron"}, "kind", "cron", "one of service, job"),
    ({"kind": "cron", "job": {}}, "kind", "cron", "one of service, job"),
    ({"job": {}}, "job", "", "goes with kind: job"),
    ({"resources": {"cpu": "two"}}, "resources.cpu", "two", "a number of CPU cores"),
    ({"resources": {"memory": "8"}}, "resources.memory", "8", "a size such as 8Gi"),
    ({"resources": {"memory": "8 gigs"}}, "resources.memory", "8 gigs", "a size such as 8Gi"),
    ({"replicas": 0}, "replicas", "0", "from 1 to 100"),
    ({"replicas": 101}, "replicas", "101", "from 1 to 100"),
    ({"replicas": 2, "min_replicas": 3}, "min_replicas", "3", "at most replicas, which is 2"),
    ({"env": {"1A": "x"}}, "env.1A", "", "a variable name"),
    ({"env": {"A": "x\0"}}, "env.A", "", "NUL"),
    ({"env": {"A": "x" * 131_073}}, "env.A", "", "at most 131,072 bytes"),
    ({"env": {f"A{n}": "x" * 131_000 for n in range(5)}}, "env", "655,010 bytes", "at most 524,288 bytes"),
    ({"env": {"PW_INDEX_VALUE": "1"}}, "env.PW_INDEX_VALUE", "", "set by PodWarden"),
    ({"env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "env.NVIDIA_VISIBLE_DEVICES", "", "PodWarden chooses the GPUs"),
    ({"secrets": {"PW_X": "s"}}, "secrets.PW_X", "", "set by PodWarden"),
    ({"secrets": {"A": "hf_SECRET"}}, "secrets.A", "", "never the secret itself"),
    ({"env": {"A": "1"}, "secrets": {"A": "s"}}, "secrets.A", "", "also stands in env"),
    ({"ports": [{"port": 0}]}, "ports[0].port", "0", "from 1 to 65535"),
    ({"ports": [{"port": 65536}]}, "ports[0].port", "65536", "from 1 to 65535"),
    ({"ports": [{}]}, "ports[0].port", "", "is missing"),
    ({"ports": [{"name": "x" * 16, "port": 1}]}, "ports[0].name", "x" * 16, "at most 15"),
    ({"ports": [{"name": "12", "port": 1}]}, "ports[0].name", "12", "at least one letter"),
    ({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}, "ports[1].name", "a", "two ports are called a"),
    ({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 1}]}, "ports[1].port", "1", "listed twice"),
    ({"ports": [{"port": 1, "expose": "world"}]}, "ports[0].expose", "world", "one of cluster, lan"),
    ({"ports": [8080]}, "ports[0]", "8080", "a section with keys: name, port"),
    ({"volumes": [{"path": "/a", "kind": "scratch"}]}, "volumes[0].name", "", "is missing"),
    ({"volumes": [{"name": "a", "kind": "scratch"}]}, "volumes[0].path", "", "is missing"),
    ({"volumes": [{"name": "a", "path": 5.0, "kind": "scratch"}]}, "volumes[0].path", "5.0", "an absolute path"),
    ({"volumes": [{"name": "a", "path": ["x"], "kind": "scratch"}]}, "volumes[0].path", "", "a text"),
    ({"volumes": [{"name": "a", "path": "/a"}]}, "volumes[0].kind", "", "is missing"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "nfs"}]}, "volumes[0].kind", "nfs", "one of storage, disk"),
    ({"volumes": [{"name": "a", "path": "/a/../b", "kind": "scratch"}]}, "volumes[0].path", "/a/../b", "without .."),
    ({"volumes": [{"name": "a", "path": "a", "kind": "scratch"}]}, "volumes[0].path", "a", "an absolute path"),
    ({"volumes": [{"name": "a", "path": "/", "kind": "scratch"}]}, "volumes[0].path", "/", "an absolute path"),
    ({"volumes": [{"name": "a", "path": "/a:b", "kind": "scratch"}]}, "volumes[0].path", "/a:b", "without a colon"),
    ({"volumes": [{"name": "a", "path": "/dev/shm", "kind": "scratch"}]}, "volumes[0].path", "/dev/shm", "use shm"),
    ({"volumes": [{"name": "a", "path": "/proc", "kind": "scratch"}]}, "volumes[0].path", "/proc", "outside /dev, /proc"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "scratch"}, {"name": "a", "path": "/b", "kind": "scratch"}]}, "volumes[1].name", "a", "two volumes are called a"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "scratch"}, {"name": "b", "path": "/a/", "kind": "scratch"}]}, "volumes[1].path", "/a/", "another volume has this path"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "disk"}]}, "volumes[0].size", "", "a disk needs a size"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "storage"}]}, "volumes[0].storage", "", "is missing"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "storage", "storage": "m", "size": "1Gi"}]}, "volumes[0].size", "1Gi", "leave size out"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "cache", "storage": "m"}]}, "volumes[0].storage", "m", "kind: storage only, this one is cache"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "cache", "read_only": True}]}, "volumes[0].read_only", "true", "kind: storage only"),
    ({"volumes": [{"name": "a", "path": "/a", "kind": "storage", "storage": "m", "subpath": "../x"}]}, "volumes[0].subpath", "../x", "without .."),
    ({"devices": ["/etc/passwd"]}, "devices[0]", "/etc/passwd", "a device path"),
    ({"devices": ["/dev/../etc"]}, "devices[0]", "/dev/../etc", "a device path"),
    ({"devices": ["/dev/dri/../mem"]}, "devices[0]", "/dev/dri/../mem", "without .."),
    ({"devices": ["/dev/nvidia0"]}, "devices[0]", "/dev/nvidia0", "GPUs come from gpu"),
    ({"host_network": "on"}, "host_network", "on", "true or false"),
    ({"host_network": True, "replicas": 2}, "host_network", "true", "with one instance only"),
    ({"host_network": True, "kind": "job", "job": {"array": "1-3"}}, "host_network", "true", "with one task only"),
    ({"network_mode": "host"}, "network_mode", "", "host_network: true"),
    ({"health": {}}, "health", "", "exactly one of http, tcp and command"),
    ({"health": {"http": {"port": 1}, "tcp": {"port": 1}}}, "health", "http and tcp", "exactly one of"),
    ({"health": {"http": {"path": "/"}}}, "health.http.port", "", "is missing"),
    ({"health": {"http": {"path": "/"}}, "ports": [{"port": 1}, {"port": 2}]}, "health.http.port", "", "is missing"),
    ({"health": {"http": {"path": "x", "port": 1}}}, "health.http.path", "x", "a path such as /health"),
    ({"health": {"command": []}}, "health.command", "", "a command such as"),
    ({"health": {"tcp": {"port": 1}, "startup": "2d"}}, "health.startup", "2d", "at most 24h"),
    ({"health": {"tcp": {"port": 1}, "period": "2h"}}, "health.period", "2h", "at most 1h"),
    ({"shm": "2"}, "shm", "2", "a size such as"),
    ({"priority": "urgent"}, "priority", "urgent", "one of critical, high, normal, low, idle"),
    ({"priority": 500}, "priority", "500", "one of critical"),
    ({"preemptible": "yes"}, "preemptible", "yes", "true or false"),
    ({"hours": "22-7"}, "hours", "22-7", "hours such as"),
    ({"hours": "24:00-07:00"}, "hours", "24:00-07:00", "hours such as"),
    ({"hours": "07:00-07:00"}, "hours", "07:00-07:00", "at different times"),
    ({"node": "N 1"}, "node", "N 1", "a name of lower-case"),
    ({"node": "n1", "avoid": ["n1"]}, "node", "n1", "stands in avoid"),
    ({"avoid": ["n1", "n1"]}, "avoid[1]", "n1", "named twice"),
    ({"update": "rolling"}, "update", "rolling", "one of auto, surge, recreate"),
    ({"surge_wait": "10"}, "surge_wait", "10", "a duration"),
    ({"idle_stop": "soon"}, "idle_stop", "soon", "a duration"),
    ({"notify": ["tgram://token/chat"]}, "notify[0]", "tgram://token/chat", "a name of lower-case"),
    ({"command": "run me"}, "command", "run me", "a list"),
    ({"args": [{"a": 1}]}, "args[0]", "a section", "a text"),
    ({"args": ["a\0b"]}, "args[0]", "a\ufffdb", "NUL"),
    ({"args": ["\ud800"]}, "args[0]", "\ufffd", "surrogates"),
    ({"annotations": {"evil.io/x": "1"}}, "annotations.evil.io/x", "", "starts with simulator.podwarden.io/"),
    ({"template": "A b"}, "template", "A b", "lower-case letters"),
    ({5: 1}, "5", "", "a key must be a word"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "field", "value", "fix"),
    REFUSED,
    ids=[f"{n}-{r[1][:30]}" for n, r in enumerate(REFUSED)],
)
def test_refused_with_field_value_and_fix(more, field, value, fix):
    found = problems({**PLAIN, **more})
    assert len(found) == 1, found
    assert found[0][0] == field
    assert found[0][1] == (value if len(value) < 60 else value[:59] + "…")
    assert fix in found[0][2]


JOBS_REFUSED = [
    ({"job": {"array": "10-1"}}, "job.array", "10-1", "the first not above the last"),
    ({"job": {"array": "1-1000000000"}}, "job.array", "1-1000000000", "1,000,000,000 tasks are more than the limit of 100,000"),
    ({"job": {"array": "999999999-1000000000"}}, "job.array", "999999999-1000000000", "numbers below 1,000,000,000"),
    ({"job": {"array": "1-" + "9" * 30}}, "job.array", "1-" + "9" * 30, "first-last"),
    ({"job": {"array": 250}}, "job.array", "250", "first-last such as 1-250"),
    ({"job": {"array": "-5-1"}}, "job.array", "-5-1", "first-last"),
    ({"job": {"array": [1, 2]}}, "job.array", "", "a text"),
    ({"job": {"array": "1-9", "parallelism": "all"}}, "job.parallelism", "all", "max, or a whole number"),
    ({"job": {"array": "1-9", "parallelism": 0}}, "job.parallelism", "0", "max, or a whole number"),
    ({"job": {"parallelism": 2}}, "job.parallelism", "2", "add array"),
    ({"job": {"gang": True}}, "job.gang", "true", "a gang needs its members"),
    ({"job": {"gang": True, "array": "1-9", "parallelism": 2}}, "job.parallelism", "2", "leave parallelism out"),
    ({"job": {"gang": True, "array": "1-257"}}, "job.array", "1-257", "at most 256 tasks"),
    ({"job": {"retries": -1}}, "job.retries", "-1", "from 0 to 100"),
    ({"job": {"time_limit": "2 hours"}}, "job.time_limit", "2 hours", "a duration"),
    ({"job": {"frames": "1-2"}}, "job.frames", "", "no such key"),
    ({"replicas": 2}, "replicas", "2", "goes with kind: service"),
    ({"update": "auto"}, "update", "auto", "goes with kind: service"),
    ({"idle_stop": "1h"}, "idle_stop", "1h", "goes with kind: service"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "field", "value", "fix"), JOBS_REFUSED)
def test_jobs_refused(more, field, value, fix):
    found = problems({**JOB, **more})
    assert [(f, v) for f, v, _ in found] == [(field, value)]
    assert fix in found[0][2]


def test_every_fault_is_named_in_the_order_of_the_file():
    found = problems(
        {"zzz": 1, "gpu": {"count": 0, "vram": "16 gigs"}, "image": "a b", "name": "B"}
    )
    assert [f for f, _, _ in found] == ["zzz", "gpu.count", "gpu.vram", "image", "name"]


@pytest.mark.parametrize("document", [None, [], "name: a", 3])
def test_what_is_no_section_is_refused(document):
    assert problems(document)[0][2].startswith("a section with keys: name, kind")


@pytest.mark.parametrize(
    "image",
    ["nginx", "ollama/ollama:0.9", "docker.example:5000/a/b_c/d--e:V1.2_x-y", "localhost/x", "[::1]:5000/x",
     "a@sha256:" + "0" * 64, "a:1@sha512:" + "f" * 128, "host.local/a.b/c"],
)  # fmt: skip
def test_images(image):
    assert image_fault(image) == ""


@pytest.mark.parametrize(
    ("image", "fix"),
    [
        ("a b", "without spaces"), ("a\n", "without spaces"), ("ä", "without spaces"), ("a" * 600, "without spaces"),
        ("a@sha256:12", "64 hexadecimal digits"), ("a@", "64 hexadecimal digits"), ("a:", "a tag"), ("a:b c", "without spaces"),
        ("a:-x", "a tag"), ("A/b:1", "lower-case: a/b"), ("/a", "an image such as"), ("a//b", "an image such as"),
        ("a/", "an image such as"), ("-host.x/a", "an image such as"), ("a/.b", "an image such as"), ("http://a/b", "an image such as"),
        (":1", "an image such as"),
    ],
)  # fmt: skip
def test_images_refused(image, fix):
    assert fix in image_fault(image)


def test_json_both_ways():
    spec = from_document({**PLAIN, "env": {"A": "ä\n"}, "gpu": {"vram": 8}})
    text = spec_to_json(spec)
    assert "\n" not in text
    assert json.loads(text) == to_document(spec)
    assert spec_from_json(text) == spec


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "null", "{}", '{"name": "a", "image": NaN}', '{"a":' * 3000]
)
def test_json_that_is_none_is_refused(text):
    with pytest.raises(Invalid):
        spec_from_json(text)


def test_json_beyond_the_limit_is_not_parsed():
    with pytest.raises(Invalid, match="at most"):
        spec_from_json(" " * (MOST_JSON + 1))


def test_deep_and_huge_values_are_refused_without_being_walked():
    deep = {}
    for _ in range(50_000):
        deep = {"a": deep}
    assert problems({**PLAIN, "env": {"A": deep}, "gpu": deep, "name": "x" * 10**6}) == [
        ("name", "x" * 59 + "…", "at most 1,024 bytes"),
        ("env.A", "", "a text"),
        (
            "gpu.a",
            "",
            "no such key; known are count, vram, sharing, model, compute, encoder_sessions, over_budget",
        ),
    ]
