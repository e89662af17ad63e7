"""What makes a template whole, and everything that breaks one: field, line, fix."""

import textwrap

import pytest

from podwarden.catalog.generated import generate
from podwarden.catalog.overrides import Overrides
from podwarden.catalog.parameters import KINDS, Parameter, value_of
from podwarden.catalog.reader import read
from podwarden.catalog.template import read_template
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import Priority
from podwarden.errors import Invalid

WHOLE = """\
template: demo
title: Demo
purpose: To be tested.
homepage: https://example.org/demo
parameters:
  - {name: frames, type: range, default: 1-9, help: First and last frame.}
  - {name: tag, default: "1"}
  - {name: scene, required: true, help: The file.}
  - {name: codec, type: choice, choices: [a, b], default: b}
  - {name: tries, type: int, min: 0, max: 5, default: 2}
  - {name: yields, type: bool, default: "true"}
workload:
  kind: job
  image: demo:${tag}
  args: ["${scene}", "-c", "${codec}", "--gpus=${gpus}"]
  gpu: {count: 1, vram: 8GB}
  preemptible: ${yields}
  job: {array: "${frames}", retries: "${tries}"}
notes: Nothing.
"""


def template(text=WHOLE):
    return read_template(read(text, "t.yaml"), "t.yaml")


def resolve(parameters=None, **overrides):
    return template().resolve({"scene": "a.blend", **(parameters or {})}, Overrides(**overrides))


def faults(parameters=None, **overrides):
    with pytest.raises(Invalid) as caught:
        resolve(parameters, **overrides)
    return [str(p) for p in caught.value.problems]


def test_a_template_with_its_defaults():
    spec = resolve()
    assert spec.name == spec.template == "demo"
    assert spec.image == "demo:1"
    assert spec.args == ("a.blend", "-c", "b", "--gpus=1")
    assert spec.job.array == (1, 9)
    assert spec.job.retries == 2
    assert spec.preemptible


def test_parameters_reach_the_workload():
    spec = resolve({"frames": "1-40", "tag": "2.0", "tries": "0", "yields": "false", "codec": "a"})
    assert spec.job.array == (1, 40)
    assert spec.image == "demo:2.0"
    assert spec.job.retries == 0
    assert not spec.preemptible
    assert spec.args[2] == "a"


def test_options_go_before_the_check():
    spec = resolve(
        name="mine", cluster="home", gpus="2", vram="20GB", model="RTX 3090, A10", priority="high"
    )
    assert spec.name == "mine"
    assert spec.template == "demo"
    assert spec.cluster == "home"
    assert spec.gpu == Request(2, 20480, model=("RTX 3090", "A10"))
    assert spec.args[3] == "--gpus=2"
    assert spec.priority is Priority.HIGH
    assert resolve(sharing="shared", vram="4GB").gpu == Request(1, 4096, Sharing.SHARED)
    assert resolve(sharing="dedicated").gpu == Request(1, 8192)


def test_options_may_bring_a_gpu_to_a_template_without_one():
    bare = WHOLE.replace("  gpu: {count: 1, vram: 8GB}\n", "")
    assert template(bare).resolve({"scene": "x"}, Overrides()).gpu is None
    spec = template(bare).resolve({"scene": "x"}, Overrides(gpus="3"))
    assert spec.gpu == Request(3)
    assert spec.args[3] == "--gpus=3"
    assert template(bare).resolve({"scene": "x"}, Overrides()).args[3] == "--gpus=0"


@pytest.mark.parametrize(
    ("parameters", "overrides", "said"),
    [
        ({}, {"vram": "16 gigs"}, ["--vram 16 gigs: a VRAM size such as 16GB or 7.5GB, from 0.25GB up"]),
        ({}, {"vram": "-1GB"}, ["--vram -1GB: a VRAM size such as 16GB or 7.5GB, from 0.25GB up"]),
        ({}, {"gpus": "0"}, ["--gpus 0: a whole number of GPUs from 1 to 32"]),
        ({}, {"gpus": "-2"}, ["--gpus -2: a whole number of GPUs from 1 to 32"]),
        ({}, {"gpus": "33"}, ["--gpus 33: a whole number of GPUs from 1 to 32"]),
        ({}, {"gpus": "9" * 5000}, ["--gpus " + "9" * 59 + "…: a whole number of GPUs from 1 to 32"]),
        ({}, {"gpus": "two", "priority": "urgent"},
         ["--gpus two: a whole number of GPUs from 1 to 32", "--priority urgent: one of critical, high, normal, low, idle"]),
        ({}, {"sharing": "maybe"}, ["--shared maybe: one of shared, dedicated"]),
        ({}, {"model": "A10,"}, ["--model A10,: a GPU model such as RTX 3090"]),
        ({}, {"model": "A10,A10"}, ["--model A10: named twice: keep one"]),
        ({}, {"gpus": "2", "sharing": "shared"}, ["--gpus 2: a shared workload uses one GPU: count 1, or sharing: dedicated"]),
        ({"frames": "10-1"}, {}, ["--set frames=10-1: first-last such as 1-250, the first not above the last"]),
        ({"frames": "1-1000000000"}, {}, ["--set frames=1-1000000000: 1,000,000,000 tasks are more than the limit of 100,000 per job"]),
        ({"framse": "1-2"}, {}, ["--set framse=1-2: demo has no such parameter: did you mean frames?"]),
        ({"zzz": "1"}, {}, ["--set zzz=1: demo has no such parameter; it has frames, tag, scene, codec, tries, yields"]),
        ({"scene": ""}, {}, ["--set scene=: is missing: the file"]),
        ({"scene": "a\nb"}, {}, ["--set scene=a\ufffdb: one line of text without control or invisible characters"]),
        ({"codec": "c"}, {}, ["--set codec=c: one of a, b"]),
        ({"tries": "6"}, {}, ["--set tries=6: a whole number from 0 to 5"]),
        ({"tries": "many"}, {}, ["--set tries=many: a whole number from 0 to 5"]),
        ({"yields": "yes"}, {}, ["--set yields=yes: true or false"]),
        ({"tag": "a b"}, {}, ["--set tag=a b: an image such as ollama/ollama:0.9 or registry.home:5000/team/app@sha256:…, without spaces"]),
    ],
)  # fmt: skip
def test_faults_are_named_as_the_user_typed_them(parameters, overrides, said):
    assert faults(parameters, **overrides) == said


def test_a_flood_of_unknown_parameters_gets_a_short_answer():
    assert len(faults({f"frames{n}": "" for n in range(100_000)})) == 50


def test_name_faults_are_named_by_the_option():
    assert faults(name="My_App")[0].startswith("--name My_App: lower-case letters")
    assert faults(cluster="A")[0].startswith("--cluster A: lower-case letters")


def test_a_shared_gpu_without_a_budget_is_the_options_fault():
    bare = WHOLE.replace(", vram: 8GB", "")
    with pytest.raises(Invalid, match=r"--vram: a shared GPU needs a budget: add vram such as 6GB"):
        template(bare).resolve({"scene": "x"}, Overrides(sharing="shared"))


BROKEN = [
    ("args: [", 'args: ["${missing}", ', "workload.args[0]", 15, "no parameter has this name"),
    ("${tag}", "${tagg}", "workload.image", 14, "did you mean tag?"),
    ("${tag}", "${tag", "workload.image", 14, "no parameter has this name"),
    ("  preemptible: ${yields}\n", "", "parameters[5].name", 11, "no placeholder uses it"),
    ("default: 1-9", "default: 9-1", "parameters[0].default", 6, "first-last"),
    ("type: range", "type: frames", "parameters[0].type", 6, "one of string, int"),
    ("default: b}", "default: c}", "parameters[3].default", 9, "one of a, b"),
    ("choices: [a, b]", "choices: []", "parameters[3].choices", 9, "the list of choices"),
    ("{name: tag, ", "{name: tag, choices: [x], ", "parameters[1].choices", 7, "goes with type: choice"),
    ("required: true", "required: true, default: x", "parameters[2].default", 8, "a required parameter has no default"),
    ("max: 5", "max: -1", "parameters[4].min", 10, "at most max"),
    ("default: 2", "default: 9", "parameters[4].default", 10, "from 0 to 5"),
    ("{name: tag", "{name: Tag", "parameters[1].name", 7, "lower-case letters"),
    ("{name: tag, ", "{", "parameters[1].name", 7, "is missing"),
    ("{name: tag", "{name: frames", "parameters[1].name", 7, "two parameters have this name"),
    ("{name: tag", "{name: gpus", "parameters[1].name", 7, "choose another name"),
    ("template: demo", "template: My Demo", "template", 1, "lower-case letters"),
    ("title: Demo\n", "", "title", None, "is missing"),
    ("purpose: To be tested.", "purpose: [x]", "purpose", 3, "a text"),
    ("https://example.org/demo", "javascript:alert(1)", "homepage", 4, "https://"),
    ("notes: Nothing.", "note: Nothing.", "note", 19, "did you mean notes?"),
    ("  kind: job", "  kind: jobs", "workload.kind", 13, "one of service, job"),
    ("  kind: job", "  vram: 8GB\n  kind: job", "workload.vram", 13, "write gpu.vram"),
    ("  kind: job", "  cluster: home\n  kind: job", "workload.cluster", 13, "does not belong in a template"),
    ("  kind: job", "  env: {'A${tag}': x}\n  kind: job", "workload.env.A${tag}", 13, "never in a key"),
    ("{name: tag, ", "{name: tag, type: int, example: x, ", "parameters[1].example", 7, "a whole number"),
    ("vram: 8GB", "vram: 8 gigs", "workload.gpu.vram", 16, "a VRAM size"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "field", "line", "fix"),
    BROKEN,
    ids=[f"{n}-{b[2]}" for n, b in enumerate(BROKEN)],
)
def test_a_broken_template_names_path_line_and_fix(old, new, field, line, fix):
    assert old in WHOLE
    with pytest.raises(Invalid) as caught:
        template(WHOLE.replace(old, new, 1))
    named = {(p.field, p.line) for p in caught.value.problems if fix in p.fix}
    assert (field, line) in named, caught.value.problems
    assert str(caught.value).startswith("t.yaml: ")


@pytest.mark.parametrize(
    "text", ["- a\n", "text\n", "template: a\ntitle: b\npurpose: c\nworkload: []\n"]
)
def test_what_is_no_template(text):
    with pytest.raises(Invalid, match="section"):
        template(text)


def test_optional_parameters_are_tried_set_and_unset():
    text = textwrap.dedent("""\
        template: demo
        title: Demo
        purpose: To be tested.
        parameters:
          - {name: token, type: secret}
          - {name: folder}
        workload:
          image: x
          secrets: {T: "${token}"}
          volumes:
            - {when: folder, name: data, path: "${folder}", kind: scratch}
        """)
    # Set, the folder's sample is no absolute path: seen only because optional parameters are tried too.
    with pytest.raises(Invalid) as caught:
        template(text)
    assert [(p.field, p.line) for p in caught.value.problems] == [("workload.volumes[0].path", 11)]
    assert (
        template(text.replace("name: folder", "name: folder, example: /data")).parameters[1].example
        == "/data"
    )
    fixed = template(text.replace('"${folder}"', '"/data/${folder}"'))
    assert fixed.resolve({}, Overrides()).secrets == ()
    assert fixed.resolve({"token": "hf"}, Overrides()).secrets == (("T", "hf"),)


def test_a_broken_sample_of_the_template_itself_is_found():
    text = WHOLE.replace("required: true", "type: vram, required: true").replace(
        "image: demo:${tag}", "image: demo:${tag}${scene}!"
    )
    with pytest.raises(Invalid) as caught:
        template(text)
    assert caught.value.problems[0].field == "workload.image"


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_right_for_their_kind(kind):
    parameter = Parameter("x", kind, choices=("one",) if kind == "choice" else ())
    value_of(parameter, parameter.sample())
    assert Parameter("x", default="mine").sample() == "mine"


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("size", "8Gi", "8"), ("vram", "8GB", "8 gigs"), ("cpu", "500m", "x"), ("duration", "2h", "2"),
        ("range", "1-2", "2-1"), ("secret", "my-token", "hf_ABC"), ("string", "ä b", "a\tb"),
    ],
)  # fmt: skip
def test_values_by_kind(kind, good, bad):
    parameter = Parameter("x", kind)
    assert value_of(parameter, good) == good
    assert value_of(parameter, "") == ""
    with pytest.raises(ValueError):
        value_of(parameter, bad)


def test_a_missing_value_says_what_it_is_for():
    for parameter, text in [
        (Parameter("x", required=True), "is missing"),
        (Parameter("x", title="The X", required=True), "is missing: the X"),
    ]:
        with pytest.raises(ValueError) as caught:
            value_of(parameter, "")
        assert str(caught.value) == text


PLACED = """\
template: demo
title: Demo
purpose: To be tested.
parameters:
  - {name: scene, type: file, default: a.blend}
  - {name: out, type: storage}
  - {name: key, type: secret, generate: true}
workload:
  kind: job
  image: demo:1
  args: ["${scene.path}"]
  gpu: {count: 1, vram: 8GB, budget: 5GB}
  secrets: {KEY: "${key}"}
  volumes:
    - {when: scene.storage, name: in, path: /in, kind: storage, storage: "${scene.storage}"}
    - {when: out, name: out, path: /out, kind: storage, storage: "${out.storage}", subpath: "x/${out.path}"}
"""


def placed(parameters=None, **overrides):
    return template(PLACED).resolve(parameters or {}, Overrides(**overrides))


def test_places_in_a_storage_have_two_parts():
    def volumes(parameters):
        return [(v.storage, v.subpath) for v in placed(parameters).volumes]

    assert placed().args == ("a.blend",)
    assert volumes({}) == []
    assert placed({"scene": "renders:s/b c.blend"}).args == ("s/b c.blend",)
    assert volumes({"scene": "renders:s/b.blend"}) == [("renders", "")]
    assert volumes({"out": "renders"}) == [("renders", "x")]
    assert volumes({"out": "renders:a/b"}) == [("renders", "x/a/b")]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"scene": "renders:../x"}, "a file in a storage such as renders:shot7/scene.blend, without .."),
        ({"scene": "/etc/passwd"}, "a file in a storage such as renders:shot7/scene.blend, without .."),
        ({"scene": "Big:a.blend"}, "a file in a storage such as renders:shot7/scene.blend, without .."),
        ({"scene": "a//b"}, "a file in a storage such as renders:shot7/scene.blend, without .."),
        ({"out": "renders:a/../b"}, "a storage such as media, or a folder in it such as media:films, without .."),
        ({"out": "a/b"}, "a storage such as media, or a folder in it such as media:films, without .."),
        ({"out": "a:b\u202e"}, "a storage such as media, or a folder in it such as media:films, without .."),
        ({"out": "s" * 64}, "a storage such as media, or a folder in it such as media:films, without .."),
    ],
)  # fmt: skip
def test_places_never_lead_out_of_a_storage(parameters, said):
    with pytest.raises(Invalid) as caught:
        placed(parameters)
    ((problem),) = caught.value.problems
    assert problem.field == "--set"
    assert problem.fix == said


def test_a_secret_that_nobody_gives_is_made_for_this_workload():
    whole = template(PLACED)
    assert [(g.parameter, g.secret) for g in whole.generated({}, Overrides())] == [
        ("key", "demo-key")
    ]
    assert placed().secrets == (("KEY", "demo-key"),)
    assert placed(name="mine").secrets == (("KEY", "mine-key"),)
    assert placed({"key": ""}).secrets == (("KEY", "demo-key"),)
    assert placed({"key": "own"}).secrets == (("KEY", "own"),)
    assert whole.generated({"key": "own"}, Overrides()) == ()
    longest = placed(name="a" * 40).secrets[0][1]
    assert len(longest) <= 63


def test_made_secrets_are_long_plain_and_never_the_same():
    made = {generate() for _ in range(200)}
    assert len(made) == 200
    assert all(len(one) == 24 and one.isascii() and one.isalnum() for one in made)


def test_sharing_asks_for_the_templates_budget_unless_a_size_is_named():
    assert placed().gpu == Request(1, 8192)
    assert placed(sharing="shared").gpu == Request(1, 5120, Sharing.SHARED)
    assert placed(sharing="shared", vram="7GB").gpu == Request(1, 7168, Sharing.SHARED)
    assert placed(sharing="dedicated").gpu == Request(1, 8192)
    assert placed(gpus="2").gpu == Request(2, 8192)


@pytest.mark.parametrize(
    ("old", "new", "field", "fix"),
    [
        ("budget: 5GB", "budget: 5 gigs", "workload.gpu.budget", "a VRAM size"),
        ("type: secret, generate", "type: int, generate", "parameters[2].generate", "goes with type: secret"),
        ("generate: true", "generate: true, required: true", "parameters[2].generate", "leave required and default out"),
        ("generate: true", "generate: perhaps", "parameters[2].generate", "true or false"),
        ("${out.storage}", "${out.name}", "workload.volumes[1].storage", "no parameter has this name"),
        ("${key}", "${key.storage}", "workload.secrets.KEY", "no parameter has this name"),
        ("default: a.blend", "default: /a.blend", "parameters[0].default", "a file in a storage"),
    ],
)  # fmt: skip
def test_what_breaks_a_template_with_places_and_secrets(old, new, field, fix):
    assert old in PLACED
    with pytest.raises(Invalid) as caught:
        template(PLACED.replace(old, new, 1))
    named = [p.field for p in caught.value.problems if fix in p.fix]
    assert field in named, caught.value.problems


def test_the_name_of_a_made_secret_leaves_room_for_the_workloads():
    with pytest.raises(Invalid, match="at most 20 characters"):
        template(PLACED.replace("key", "k" * 21))
