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

BUILT_IN_NAMES = ["blender-render", "ollama", "transcode", "vllm", "web"]
OWN = "template: {name}\ntitle: Mine\npurpose: To be tested.\nworkload: {{image: mine:1}}\n"


@pytest.fixture(scope="module")
def catalogue():
    return load()


def test_the_built_in_templates(catalogue):
    assert list(catalogue.templates) == BUILT_IN_NAMES
    assert catalogue.broken == ()


@pytest.mark.parametrize("name", BUILT_IN_NAMES)
def test_each_built_in_template_is_finished(catalogue, name):
    template = catalogue.templates[name]
    assert template.homepage.startswith("https://")
    assert template.source == f"{name}.yaml"
    assert all(
        parameter.title and parameter.help.endswith(".") for parameter in template.parameters
    )
    spec = catalogue.resolve(name)
    assert spec.name == spec.template == name
    assert from_document(to_document(spec)) == spec
    assert re.search(r":v?\d+\.\d+", spec.image), "an image has a version that does not move"
    assert spec.kind is Kind.JOB or spec.health is not None
    assert spec.kind is Kind.SERVICE or spec.job.time_limit_s, "a job that ends is planned with"
    assert spec.instance_memory_mib <= 24 * 1024
    assert spec.cpu_milli <= 4000
    # Several GPUs talk through shared memory, and the container's own 64 MB are not enough (P-58).
    assert spec.gpu is None or spec.shared_memory_mib >= 256
    assert (
        catalogue.resolve(
            name, overrides=Overrides(gpus="2", sharing="dedicated")
        ).shared_memory_mib
        >= 256
    )


def test_ollama(catalogue):
    spec = catalogue.resolve("ollama")
    assert spec.gpu == Request(1, 8192)
    assert [(p.port, p.expose) for p in spec.ports] == [(11434, Expose.LAN)]
    assert [(v.path, v.kind) for v in spec.volumes] == [
        (dict(spec.env)["OLLAMA_MODELS"], VolumeKind.CACHE)
    ]
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


@pytest.mark.parametrize("name", ["blender-render", "transcode", "web"])
def test_data_lies_in_the_storage_that_is_named(catalogue, name):
    spec = catalogue.resolve(name, parameters={"storage": "media", "folder": "a/b"})
    assert [(v.kind, v.storage, v.subpath) for v in spec.volumes] == [
        (VolumeKind.STORAGE, "media", "a/b")
    ]
    plain = catalogue.resolve(name)
    assert all(v.kind is VolumeKind.CACHE for v in plain.volumes)


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
