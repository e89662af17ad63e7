"""The catalogue: built-in templates are right, own ones override, broken ones are named and skipped."""

import os
import re

import pytest

from podwarden.catalog import Overrides, load
from podwarden.catalog.catalogue import BUILT_IN
from podwarden.catalog.reader import MOST_BYTES
from podwarden.domain.document import from_document, to_document
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import Expose, Kind, Priority, VolumeKind
from podwarden.errors import Invalid, NotFound

BUILT_IN_NAMES = [
    "blender-render", "code-model", "comfyui", "file-server", "frigate", "gpu-check",
    "home-assistant", "immich", "immich-database", "immich-machine-learning", "invokeai",
    "jellyfin", "jupyter", "llama-cpp", "mqtt", "n8n", "ollama", "open-webui", "plex", "postgres",
    "pytorch-train", "qdrant", "redis", "reverse-proxy", "stable-diffusion", "tdarr",
    "text-to-speech", "transcode", "uptime-kuma", "vllm", "web", "whisper",
]  # fmt: skip
OWN = "template: {name}\ntitle: Mine\npurpose: To be tested.\nworkload: {{image: mine:1}}\n"


@pytest.fixture(scope="module")
def catalogue():
    return load()


def test_the_built_in_templates(catalogue):
    assert list(catalogue.templates) == BUILT_IN_NAMES
    assert catalogue.broken == ()


def given(template):
    """What must be given, as the template's own examples have it."""
    return {p.name: p.example for p in template.parameters if p.required}


@pytest.mark.parametrize("name", BUILT_IN_NAMES)
def test_each_built_in_template_is_finished(catalogue, name):
    template = catalogue.templates[name]
    must = given(template)
    assert all(must.values()), "what must be given has an example"
    assert template.homepage.startswith("https://")
    assert template.source == f"{name}.yaml"
    assert all(
        parameter.title and parameter.help.endswith(".") for parameter in template.parameters
    )
    spec = catalogue.resolve(name, parameters=must)
    assert spec.name == spec.template == name
    assert from_document(to_document(spec)) == spec
    tag = spec.image.partition("@")[0].partition(":")[2]
    assert "@sha256:" in spec.image or re.search(r"\d+\.\d+|-b\d{4,}", tag), "a version"
    assert tag not in {"latest", "main", "stable", "release"}
    assert spec.kind is Kind.JOB or spec.health is not None
    assert spec.kind is Kind.SERVICE or spec.job.time_limit_s, "a job that ends is planned with"
    assert spec.instance_memory_mib <= 24 * 1024
    assert spec.cpu_milli <= 4000
    assert template.notes or name == "web"
    if spec.gpu is not None:
        # The container's own 64 MB of shared memory are rarely enough (P-58), what a template asks is said.
        assert spec.shared_memory_mib >= (64 if name == "gpu-check" else 256)
        assert {"compute", "utility"} <= set(
            dict(spec.env)["NVIDIA_DRIVER_CAPABILITIES"].split(",")
        )
    if spec.gpu is not None and spec.gpu.encoder_sessions:
        assert "video" in dict(spec.env)["NVIDIA_DRIVER_CAPABILITIES"]
    assert spec.health is None or spec.health.startup_s >= 60
    assert not spec.devices, "a template that everybody may deploy needs no device of the host"


def test_templates_can_run_beside_each_other(catalogue):
    """No two ask for the same port of the local network, and what links them is their names."""
    specs = [catalogue.resolve(n, parameters=given(t)) for n, t in catalogue.templates.items()]
    taken = [
        (port.port, port.protocol)
        for spec in specs
        for port in spec.ports
        if port.expose is Expose.LAN
    ]
    assert len(taken) == len(set(taken))
    reached = {f"{spec.name}:{port.port}" for spec in specs for port in spec.ports}
    links = {
        link
        for spec in specs
        for text in (*dict(spec.env).values(), *spec.command)
        for link in re.findall(r"(?:http://|^)([a-z][a-z-]+:\d+)", text)
    }
    assert len(links) >= 3
    assert links <= reached
    hosts = dict(catalogue.resolve("immich").env)
    assert {hosts["DB_HOSTNAME"], hosts["REDIS_HOSTNAME"]} <= {spec.name for spec in specs}


def test_whole_gpus_and_parts(catalogue):
    gpus = {
        n: catalogue.resolve(n, parameters=given(t)).gpu for n, t in catalogue.templates.items()
    }
    with_gpu = {name: gpu for name, gpu in gpus.items() if gpu is not None}
    parts = {name for name, gpu in with_gpu.items() if gpu.shared}
    assert parts == {
        "code-model", "frigate", "immich-machine-learning", "jellyfin", "llama-cpp", "plex",
        "tdarr", "text-to-speech", "transcode", "whisper",
    }  # fmt: skip
    assert {"vllm", "comfyui", "blender-render", "ollama"} <= set(with_gpu) - parts
    assert len(gpus) - len(with_gpu) >= 12, "work without a GPU"
    # A part of a GPU fits a card of 8 GB.
    assert all(with_gpu[name].vram_mib <= 6144 for name in parts)


def test_data_that_must_not_be_lost_never_lies_in_a_cache(catalogue):
    """A cache may be empty after a move: only what can be downloaded or made again may lie there."""
    allowed = {
        "blender-render": "project", "immich-machine-learning": "models", "jellyfin": "cache",
        "llama-cpp": "models", "ollama": "models", "transcode": "media", "vllm": "weights",
        "whisper": "models", "pytorch-train": "out",
    }  # fmt: skip
    found = {
        (name, volume.name)
        for name, template in catalogue.templates.items()
        for volume in catalogue.resolve(name, parameters=given(template)).volumes
        if volume.kind is VolumeKind.CACHE
    }
    assert found == set(allowed.items())


def test_passwords_are_made_where_none_is_given(catalogue):
    made = {n: [g.secret for g in catalogue.generated(n)] for n in catalogue.templates}
    assert {name: secrets for name, secrets in made.items() if secrets} == {
        "file-server": ["file-server-password"],
        "immich-database": ["immich-database-password"],
        "jupyter": ["jupyter-token"],
        "mqtt": ["mqtt-password"],
        "n8n": ["n8n-encryption-key"],
        "open-webui": ["open-webui-session-key"],
        "postgres": ["postgres-password"],
        "qdrant": ["qdrant-api-key"],
    }
    spec = catalogue.resolve("postgres")
    assert spec.secrets == (("POSTGRES_PASSWORD", "postgres-password"),)
    mine = Overrides(name="shop-db")
    assert catalogue.resolve("postgres", overrides=mine).secrets[0][1] == "shop-db-password"
    assert catalogue.generated("postgres", overrides=mine)[0].secret == "shop-db-password"
    own = {"password": "my-own"}
    assert catalogue.generated("postgres", parameters=own) == ()
    assert catalogue.resolve("postgres", parameters=own).secrets[0][1] == "my-own"
    # Immich reads the very secret that its database had made.
    assert dict(catalogue.resolve("immich").secrets)["DB_PASSWORD"] == "immich-database-password"


def test_ollama(catalogue):
    spec = catalogue.resolve("ollama")
    assert spec.gpu == Request(1, 8192)
    assert [(p.port, p.expose) for p in spec.ports] == [(11434, Expose.LAN)]
    assert [(v.path, v.kind) for v in spec.volumes] == [
        (dict(spec.env)["OLLAMA_MODELS"], VolumeKind.CACHE)
    ]
    part = catalogue.resolve("ollama", overrides=Overrides(sharing="shared")).gpu
    assert part == Request(1, 5120, Sharing.SHARED)
    more = catalogue.resolve("ollama", overrides=Overrides(sharing="shared", vram="7GB")).gpu
    assert more == Request(1, 7168, Sharing.SHARED)
    longer = catalogue.resolve("ollama", parameters={"keep_alive": "1h"})
    assert dict(longer.env)["OLLAMA_KEEP_ALIVE"] == "1h"


def test_vllm_as_the_tour_deploys_it(catalogue):
    assert catalogue.resolve("vllm").gpu.vram_mib == 24576
    code = catalogue.resolve("vllm", overrides=Overrides(name="vllm-code", vram="20GB"))
    assert (code.name, code.gpu.vram_mib, code.template) == ("vllm-code", 20480, "vllm")
    assert catalogue.resolve("vllm", overrides=Overrides(vram="80GB")).gpu.vram_mib == 81920
    two = catalogue.resolve("vllm", overrides=Overrides(gpus="2"))
    assert "--tensor-parallel-size=2" in two.args
    token = catalogue.resolve("vllm", parameters={"token": "hub", "model": "a/b"})
    assert token.secrets == (("HF_TOKEN", "hub"),)
    assert token.args[0] == "a/b"
    assert catalogue.resolve("vllm").secrets == ()
    assert [v.path for v in code.volumes] == [dict(code.env)["HF_HOME"]]
    with pytest.raises(Invalid) as caught:
        catalogue.resolve("vllm", parameters={"token": "hf_ABCDEF"})
    assert str(caught.value).startswith("--set token=…: the name of a stored secret")
    assert "hf_ABC" not in str(caught.value)


def test_blender_as_the_tour_deploys_it(catalogue):
    spec = catalogue.resolve("blender-render", parameters={"frames": "1-40"})
    assert spec.job.array == (1, 40)
    assert spec.priority is Priority.LOW
    assert spec.preemptible
    assert dict(spec.env)["NVIDIA_DRIVER_CAPABILITIES"] == "compute,graphics,utility,video"
    with pytest.raises(Invalid, match=r"--set frames=10-1: first-last"):
        catalogue.resolve("blender-render", parameters={"frames": "10-1"})


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("transcode", "a/b"), ("web", "a/b"), ("jellyfin", "a/b"), ("plex", "a/b"), ("tdarr", "a/b"),
        ("frigate", "a/b/frigate"), ("immich", "a/b"), ("jupyter", "a/b"), ("file-server", "a/b"),
    ],
)  # fmt: skip
def test_data_lies_in_the_storage_that_is_named(catalogue, name, folder):
    def lies(text):
        return [
            (v.storage, v.subpath)
            for v in catalogue.resolve(name, parameters={"storage": text}).volumes
            if v.kind is VolumeKind.STORAGE
        ]

    assert lies("media:a/b") == lies("media:/a/b/") == [("media", folder)]
    whole = lies("media")
    assert whole == [("media", "frigate" if name == "frigate" else "")]
    plain = catalogue.resolve(name)
    assert all(v.kind is not VolumeKind.STORAGE for v in plain.volumes)
    with pytest.raises(Invalid, match=r"--set storage=media:\.\./x: a storage such as media, or a"):
        lies("media:../x")


def test_blender_reads_a_scene_and_writes_its_frames_where_it_is_told(catalogue):
    spec = catalogue.resolve(
        "blender-render",
        parameters={"scene": "renders:shot7/shot7.blend", "out": "renders:shot7/out"},
    )
    assert "/project/shot7/shot7.blend" in spec.args
    assert [(v.path, v.storage, v.subpath) for v in spec.volumes] == [
        ("/project", "renders", ""),
        ("/out", "renders", "shot7/out"),
    ]
    plain = catalogue.resolve("blender-render")
    assert [(v.path, v.kind) for v in plain.volumes] == [("/project", VolumeKind.CACHE)]
    for wrong in ("renders:../a.blend", "/a.blend", "renders:", "a/../b.blend", "Renders:a.blend"):
        with pytest.raises(Invalid, match=r"--set scene=\S+: a file in a storage such as"):
            catalogue.resolve("blender-render", parameters={"scene": wrong})


def test_training_runs_its_script_on_every_gpu_it_asked_for(catalogue):
    spec = catalogue.resolve(
        "pytorch-train",
        parameters={"script": "code:mnist/train.py", "options": "--epochs 3", "out": "runs"},
        overrides=Overrides(gpus="2"),
    )
    env = dict(spec.env)
    assert (env["SCRIPT"], env["OPTIONS"], env["GPUS"]) == ("mnist/train.py", "--epochs 3", "2")
    assert [(v.path, v.storage, v.subpath) for v in spec.volumes] == [
        ("/code", "code", ""),
        ("/out", "runs", ""),
    ]
    with pytest.raises(Invalid, match=r"--set script=: is missing: the script in a storage"):
        catalogue.resolve("pytorch-train")


def test_transcode_shares_a_gpu_and_counts_its_encoder(catalogue):
    spec = catalogue.resolve("transcode", parameters={"codec": "h264_nvenc", "input": "a b.mkv"})
    assert spec.gpu == Request(1, 2048, Sharing.SHARED, encoder_sessions=1)
    assert "h264_nvenc" in spec.args
    assert "/media/a b.mkv" in spec.args
    # The image's own start reports success whatever happened.
    assert spec.command == ("/usr/local/bin/ffmpeg",)


def test_web_needs_no_gpu(catalogue):
    spec = catalogue.resolve("web", parameters={"port": "8123"})
    assert spec.gpu is None
    assert spec.ports[0].port == spec.health.port == 8123
    assert "listen 8123;" in spec.args[0]


def test_unknown_templates_are_answered_with_the_nearest(catalogue):
    with pytest.raises(NotFound) as caught:
        catalogue.resolve("olama")
    assert str(caught.value) == (
        "No template is called olama. Did you mean ollama? `podwarden template list` shows the templates there are."
    )
    with pytest.raises(NotFound, match=r"^No template is called zzz\. `podwarden"):
        catalogue.get("zzz")


def test_own_templates_override_and_add(tmp_path):
    (tmp_path / "a.yaml").write_text(OWN.format(name="ollama"))
    (tmp_path / "b.yml").write_text(OWN.format(name="mine"))
    (tmp_path / ".hidden.yaml").write_text("broken: [")
    (tmp_path / "notes.txt").write_text("broken: [")
    found = load(tmp_path)
    assert found.broken == ()
    assert list(found.templates) == sorted([*BUILT_IN_NAMES, "mine"])
    assert found.resolve("ollama").image == "mine:1"


def test_broken_own_templates_are_named_and_skipped(tmp_path):
    (tmp_path / "ok.yaml").write_text(OWN.format(name="ok"))
    (tmp_path / "twice.yaml").write_text(OWN.format(name="ok"))
    (tmp_path / "wrong.yaml").write_text(OWN.format(name="wrong").replace("mine:1", "mine 1"))
    (tmp_path / "missing.yaml").write_text(
        OWN.format(name="missing").replace("mine:1", '"mine:${tag}"')
    )
    (tmp_path / "tab.yaml").write_text("template: tab\nworkload:\n\timage: x\n")
    (tmp_path / "latin.yaml").write_bytes(b"title: \xff\n")
    (tmp_path / "huge.yaml").write_bytes(b"#" * (MOST_BYTES + 1))
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "link.yaml").symlink_to(BUILT_IN / "ollama.yaml")
    (tmp_path / "away.yaml").symlink_to("/etc/passwd")
    found = load(tmp_path)
    assert set(found.templates) == {*BUILT_IN_NAMES, "ok"}
    faults = {os.path.basename(b.source): str(b).partition(": ")[2] for b in found.broken}  # noqa: PTH119
    assert faults.pop("missing.yaml") == "line 4: workload.image ${tag}: no parameter has this name"
    expected = {
        "twice.yaml": "line 1: template ok: ok.yaml has this name too: rename one",
        "wrong.yaml": "line 4: workload.image mine 1: an image such as",
        "tab.yaml": "line 3: YAML: indent with spaces",
        "latin.yaml": "file: text in UTF-8",
        "huge.yaml": "file: at most 1,048,576 bytes",
        "folder.yaml": "file: is no ordinary file",
        "pipe.yaml": "file: is no ordinary file",
        "link.yaml": "file: cannot be read",
        "away.yaml": "file: cannot be read",
    }
    assert set(faults) == set(expected)
    for name, fault in expected.items():
        assert faults[name].startswith(fault)


def test_a_skipped_template_that_is_asked_for_says_why(tmp_path):
    text = OWN.format(name="missing").replace("mine:1", '"mine:${tag}"')
    (tmp_path / "missing.yaml").write_text(text)
    with pytest.raises(Invalid) as told:
        load(tmp_path).resolve("missing")
    assert told.value.source == str(tmp_path / "missing.yaml")
    (fault,) = told.value.problems
    assert (fault.field, fault.value, fault.line) == ("workload.image", "${tag}", 4)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    found = load(tmp_path / "nowhere")
    assert list(found.templates) == BUILT_IN_NAMES
    assert (
        str(found.broken[0])
        == f"{tmp_path / 'nowhere'}: folder: cannot be read (No such file or directory): give a folder of templates"
    )


def test_a_broken_built_in_template_stops_everything(tmp_path):
    (tmp_path / "bad.yaml").write_text("template: bad\n")
    with pytest.raises(Invalid, match=r"bad\.yaml: "):
        load(built_in=tmp_path)
