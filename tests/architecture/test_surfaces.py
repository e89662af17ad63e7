"""The surfaces are complete and agree: the command line with its list, the API with what the commands call."""

from __future__ import annotations

import ast
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer

import podwarden.cli
from podwarden.cli import lazy, main
from podwarden.web.app import create_app

# Of the complete list in the design, what exists so far; the rest comes with the room that it needs.
COMMANDS = {
    "up": None,
    "demo": None,
    "login": None,
    "token": {"create", "list", "revoke"},
    "user": {"add", "list", "remove", "passwd"},
    "cluster": {"adopt", "list", "show", "kubeconfig", "remove"},
    "storage": {"add", "list", "remove"},
    "secret": {"set", "list", "delete"},
    "template": {"list", "show"},
    "fit": None,
    "deploy": None,
    "plan": None,
    "workload": {
        "list", "show", "logs", "events", "stop", "start", "update", "rollback", "priority", "delete",
    },
    "queue": None,
    "gpus": None,
    "snapshot": None,
    "replay": None,
}  # fmt: skip
OPTIONS = {
    ("demo",): {"--once", "--stop", "--nodes", "--port", "--data"},
    ("gpus",): {"--watch"},
    ("deploy",): {
        "--name", "--cluster", "--gpus", "--vram", "--shared", "--model", "--priority", "--set",
        "--dry-run", "--wait",
    },
    ("workload", "logs"): {"--follow", "--tail"},
    ("workload", "update"): {"--recreate", "--dry-run"},
    ("workload", "rollback"): {"--to", "--recreate"},
    ("workload", "delete"): {"--volumes"},
    ("user", "add"): {"--password-file"},
    ("login",): {"--password-file"},
    ("storage", "add"): {"--nfs", "--host", "--cluster", "--no-check"},
    ("secret", "set"): {"--value-file", "--registry", "--user"},
}  # fmt: skip
# Nothing to print but the thing itself: a stream, a file, a new state of this terminal.
WITHOUT_JSON = {
    "up", "login", "snapshot", "token revoke", "user remove", "user passwd", "cluster kubeconfig",
    "cluster remove", "workload logs", "storage remove", "secret delete",
}  # fmt: skip
# The controller is only stored: nothing of it is called while the routes are laid out.
API = create_app(type("Nobody", (), {"access": None})())  # type: ignore[arg-type]


def options(command) -> set[str]:
    """With their dashes; arguments have none."""
    names = {name for parameter in command.params for name in parameter.opts}
    return {name for name in names if name.startswith("-")}


def commands():
    for name in lazy.COMMANDS:
        found = lazy.command(name)
        subcommands = getattr(found, "commands", None)
        if subcommands:
            yield from ((f"{name} {sub}", command) for sub, command in subcommands.items())
        else:
            yield name, found


def test_the_commands_are_those_of_the_list():
    assert set(lazy.COMMANDS) == set(COMMANDS)
    for name, subcommands in COMMANDS.items():
        found = getattr(lazy.command(name), "commands", None)
        assert (set(found) if found else None) == subcommands, name


@pytest.mark.parametrize(("path", "wanted"), OPTIONS.items(), ids=" ".join)
def test_the_options_of_the_list_exist(path, wanted):
    command = lazy.command(path[0])
    for name in path[1:]:
        command = command.commands[name]
    assert wanted <= options(command)


def test_json_everywhere():
    without = {name for name, command in commands() if "-o" not in options(command)}
    assert without == WITHOUT_JSON


def test_every_command_and_option_is_explained():
    for name, command in commands():
        assert command.help, name
        assert command.help.rstrip().endswith("."), name


def test_no_secret_is_ever_an_argument():
    for name, command in commands():
        secret = {o for o in options(command) if re.search("password|secret|token|value", o)}
        assert secret <= {"--password-file", "--value-file"}, name


def test_the_program_is_installed():
    assert [e.value for e in entry_points(group="console_scripts", name="podwarden")] == [
        "podwarden.cli.main:main"
    ]
    assert typer.main.get_command(main.app).name == "podwarden"


# ---- the API


def routes() -> set[tuple[str, str]]:
    return {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path.removeprefix("/api/v1")))
        for path, methods in API.openapi()["paths"].items()
        for method in methods
    }


def calls() -> set[tuple[str, str]]:
    """What the commands ask the API for, read from their sources: `api.get("clusters", name)`."""
    found = set()
    for file in Path(podwarden.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("get", "post", "put", "delete", "text", "lines")
                and ast.unparse(node.func.value) in ("api", "self._api")
            ):
                parts = [a.value if isinstance(a, ast.Constant) else "{}" for a in node.args]
                method = {"text": "GET", "lines": "GET"}.get(node.func.attr, node.func.attr.upper())
                found.add((method, "/" + "/".join(parts)))
    return found


def test_the_api_has_every_call_that_a_command_makes():
    made = calls() - {("POST", "/workloads/{}/{}")}  # stop and start share one line
    assert len(made) > 25
    known = routes() | {("POST", "/workloads/{}/stop"), ("POST", "/workloads/{}/start")}
    assert made <= known, made - known
    assert {("POST", "/workloads/{}/stop"), ("POST", "/workloads/{}/start")} <= routes()


def test_a_command_exists_for_everything_the_api_can_change():
    """What only pages and programs ask for is named here."""
    unused = {r for r in routes() if r[0] != "GET"} - calls()
    assert unused == {("POST", "/workloads/{}/stop"), ("POST", "/workloads/{}/start")}


def test_every_route_is_described():
    document = API.openapi()
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            assert route.get("summary"), (method, path)
            assert route.get("tags"), (method, path)
            good = [code for code in route["responses"] if code.startswith("2")]
            assert good, (method, path)
            for code in good:
                if code != "204" and path != "/healthz":
                    content = route["responses"][code].get("content")
                    assert content, (method, path, code)
            if path.startswith("/api/"):
                problem = route["responses"]["4XX"]["content"]
                assert any("ProblemDetails" in str(shape) for shape in problem.values())


def test_shapes_of_the_api_are_only_in_their_modules():
    root = Path(podwarden.cli.__file__).parent.parent
    with_models = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if "BaseModel" in file.read_text()
    }
    assert with_models == {"web/api/shapes.py", "web/api/shapes_stored.py"}
