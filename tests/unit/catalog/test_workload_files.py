"""`deploy FILE`: workload files, with the options in them, and the files that are something else."""

import json

import pytest

from podwarden.catalog import Overrides, read_file
from podwarden.domain.request import Request
from podwarden.errors import Invalid, Refused

FILE = "name: a\nimage: b\ngpu:\n  vram: 8GB\n"


def said(text, **more):
    with pytest.raises(Invalid) as caught:
        read_file(text, "work.yaml", **more)
    return str(caught.value)


def test_yaml_and_json():
    spec = read_file(FILE, "work.yaml")
    assert spec.name == "a"
    assert spec.gpu == Request(vram_mib=8192)
    assert spec.template == ""
    assert (
        read_file(json.dumps({"name": "a", "image": "b", "gpu": {"vram": "8GB"}}), "x.json") == spec
    )


def test_options_change_the_file():
    spec = read_file(FILE, "work.yaml", overrides=Overrides(name="c", gpus="2", vram="20GB"))
    assert spec.name == "c"
    assert spec.gpu == Request(2, 20480)


def test_every_fault_with_its_line():
    text = "name: A b\nimage: b\ngpu:\n  count: 0\n  vram: 16 gigs\nfoo: 1\n"
    found = said(text)
    assert found.startswith("work.yaml: line 1: name A b: lower-case")
    assert "; line 4: gpu.count 0: a whole number" in found
    assert "; line 5: gpu.vram 16 gigs: a VRAM size" in found
    assert "; line 6: foo: no such key" in found
    assert said("name: a\n\ngpu: {}\n").startswith("work.yaml: image: is missing")


def test_faults_of_options_are_named_by_the_option():
    assert said(FILE, overrides=Overrides(vram="16 gigs")).startswith("--vram 16 gigs: a VRAM size")
    assert said(FILE, overrides=Overrides(gpus="2", sharing="shared")).startswith(
        "--gpus 2: a shared"
    )
    both = said("name: a\nimage: b b\n", overrides=Overrides(sharing="shared"))
    assert both.startswith("--vram: a shared GPU needs a budget")
    assert "line 2: image b b" in both


def test_a_gpu_that_is_no_section_stays_the_files_fault():
    assert "line 3: gpu 1: a section with keys" in said(
        "name: a\nimage: b\ngpu: 1\n", overrides=Overrides(vram="8GB")
    )


def test_parameters_go_with_templates():
    assert (
        said(FILE, parameters={"frames": "1-2"})
        == "--set frames=1-2: goes with a template; write the value into the file"
    )


def test_compose_files_are_told_apart():
    with pytest.raises(Refused) as caught:
        read_file("services:\n  web:\n    image: nginx\n", "compose.yaml")
    assert caught.value.code == "COMPOSE_FILE"
    assert str(caught.value).startswith("compose.yaml is a Compose file.")
    assert not isinstance(caught.value, Invalid)


def test_templates_and_other_files_are_told_apart():
    assert "put it into the folder of templates" in said("template: a\nworkload: {}\n")
    assert "a workload file, a section with keys" in said("- a\n")
    assert "a workload file, a section with keys" in said("just text\n")


@pytest.mark.parametrize(
    "text", ["a: &x 1\nb: *x\n", "a:\n\tb: 1\n", "a: {<<: {b: 1}}\n", "[" * 9999]
)
def test_bombs_and_tabs_name_the_file_and_the_line(text):
    assert said(text).startswith("work.yaml: line ")
