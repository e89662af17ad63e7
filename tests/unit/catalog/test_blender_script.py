"""The start script of blender-render, run against a Blender made of plain objects (field case P-61)."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from podwarden.catalog import load


class Preferences:
    """Cycles' preferences: a device type it does not know is a TypeError, devices appear on refresh."""

    def __init__(self, kinds, devices):
        self.kinds, self.found, self.devices, self.kind = kinds, devices, [], "NONE"

    @property
    def compute_device_type(self):
        return self.kind

    @compute_device_type.setter
    def compute_device_type(self, kind):
        if kind not in self.kinds:
            raise TypeError(kind)
        self.kind = kind

    def refresh_devices(self):
        self.devices = [d for d in self.found if d.type in (self.kind, "CPU")]


def device(kind):
    return SimpleNamespace(name=f"a {kind}", type=kind, use=None)


def render(kinds, devices, *, asked="auto", engine="CYCLES", out=False):
    """Runs the template's own script; returns what was rendered."""
    spec = load().resolve("blender-render", parameters={"device": asked})
    preferences = Preferences(kinds, devices)
    rendered = []
    scene = SimpleNamespace(
        render=SimpleNamespace(engine=engine, filepath=""),
        cycles=SimpleNamespace(device="CPU"),
        frame=None,
    )
    scene.frame_set = lambda frame: setattr(scene, "frame", frame)
    bpy = ModuleType("bpy")
    bpy.context = SimpleNamespace(
        scene=scene,
        preferences=SimpleNamespace(addons={"cycles": SimpleNamespace(preferences=preferences)}),
    )
    bpy.ops = SimpleNamespace(
        render=SimpleNamespace(
            render=lambda write_still: rendered.append(
                (scene.frame, scene.cycles.device, scene.render.filepath, write_still)
            )
        )
    )
    fake_os = ModuleType("os")
    fake_os.environ = {"PW_INDEX_VALUE": "7", **dict(spec.env)}
    fake_os.path = SimpleNamespace(isdir=lambda path: out and path == "/out")
    script = spec.args[spec.args.index("--python-expr") + 1]
    before = {name: sys.modules.get(name) for name in ("bpy", "os")}
    sys.modules.update(bpy=bpy, os=fake_os)
    try:
        exec(compile(script, "script", "exec"), {})
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return preferences, rendered


def test_optix_is_taken_first_and_the_cpu_left_out():
    preferences, rendered = render(
        {"OPTIX", "CUDA"}, [device("CPU"), device("OPTIX"), device("CUDA")]
    )
    assert preferences.kind == "OPTIX"
    assert [(d.type, d.use) for d in preferences.devices] == [("CPU", False), ("OPTIX", True)]
    assert rendered == [(7, "GPU", "/project/frames/frame_0007", True)]


def test_frames_go_where_they_were_asked_for():
    _, rendered = render({"CUDA"}, [device("CUDA")], out=True)
    assert [filepath for _, _, filepath, _ in rendered] == ["/out/frame_0007"]


@pytest.mark.parametrize("kinds", [{"CUDA"}, {"OPTIX", "CUDA"}])
def test_cuda_where_there_is_no_optix(kinds):
    preferences, rendered = render(kinds, [device("CUDA")])
    assert preferences.kind == "CUDA"
    assert len(rendered) == 1


@pytest.mark.parametrize("devices", [[device("CPU")], []])
def test_without_a_gpu_the_frame_fails_and_nothing_is_rendered_on_the_cpu(devices):
    with pytest.raises(RuntimeError, match=r"^NO_GPU_DEVICE: no auto device"):
        render({"OPTIX", "CUDA"}, devices)


def test_the_device_that_was_asked_for_is_not_replaced():
    with pytest.raises(
        RuntimeError, match=r"^NO_GPU_DEVICE: no OPTIX device\. Blender sees no device"
    ):
        render({"OPTIX", "CUDA"}, [device("CUDA")], asked="OPTIX")


def test_engines_that_need_a_display_are_refused():
    with pytest.raises(
        RuntimeError, match=r"^ENGINE_NEEDS_DISPLAY: the scene renders with BLENDER_EEVEE"
    ):
        render({"OPTIX"}, [device("OPTIX")], engine="BLENDER_EEVEE")


def test_a_failed_script_fails_the_task():
    args = load().resolve("blender-render").args
    assert args[args.index("--python-exit-code") + 1] == "3"
    # Blender runs its arguments in order: scene, exit code, then the script.
    assert (
        args.index("/project/scene.blend")
        < args.index("--python-exit-code")
        < args.index("--python-expr")
    )
