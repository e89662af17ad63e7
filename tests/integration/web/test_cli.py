"""The command line as a program, against a real server: words, streams, exit codes."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from podwarden.control.answers import Made
from podwarden.domain.reason import Code, Reason
from podwarden.domain.workload import State

PODWARDEN = [str(Path(sys.executable).with_name("podwarden"))]


@pytest.fixture
def environment(served, control, tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PODWARDEN_")}
    return {
        **env,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PODWARDEN_SERVER": served.url,
        "PODWARDEN_TOKEN": control.token(),
    }


@pytest.fixture
def run(environment, tmp_path):
    def call(*args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PODWARDEN, *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={**environment, **env},
            check=False,
        )

    return call


@pytest.fixture
def follow(environment, tmp_path):
    """Starts a command that goes on; killed at the end when it still runs."""
    started: list[subprocess.Popen[str]] = []

    def call(*args: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PODWARDEN, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


def until(condition, what: str):
    for _ in range(1200):
        if found := condition():
            return found
        time.sleep(0.05)  # between two looks
    raise AssertionError(what)


def test_gpus_as_a_table(run, served, control):
    made = json.loads(run("deploy", "vllm", "-o", "json").stdout)["workload"]
    served.do(lambda: control.workloads.run(made["id"]))
    done = run("gpus")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert re.split(r" {2,}", lines[0]) == ["NODE", "GPU", "MODEL", "VRAM", "FREE", "HELD BY"]
    rows = [re.split(r" {2,}", line) for line in lines[1:]]
    assert ["n3", "0", "RTX 3060", "12.0 GiB", "11.6 GiB"] in rows
    assert ["n3", "1", "RTX 3090", "24.0 GiB", "0", "vllm (dedicated)"] in rows
    starts = {line.index("GiB") for line in lines[1:]}
    assert len(starts) == 1, "the units stand below each other"
    assert [g["index"] for g in json.loads(run("gpus", "-o", "json").stdout)] == [0, 1, 0, 1, 0]


def test_deploy_and_wait_says_where_it_runs_and_how_long_it_took(served, control, follow, run):
    process = follow("deploy", "ollama", "--wait")
    row = until(lambda: next(iter(control.workloads.rows.values()), None), "it was not deployed")
    served.do(lambda: control.workloads.run(row.id))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    said = r"ollama: running on n5, GTX 1070 \(8 GB asked\), \d+(\.\d)? s   http://192\.168\.1\.33:11434\n"
    assert re.fullmatch(said, out)
    listed = run("workload", "list").stdout.splitlines()
    assert listed[0].split()[-1] == "ADDRESS"
    assert listed[1].split()[-1] == "http://192.168.1.33:11434"


def test_a_queued_one_says_its_place_its_reason_and_the_way_out(run):
    run("deploy", "vllm")
    done = run("deploy", "vllm", "--name", "vllm-code", "--vram", "20GB")
    assert done.returncode == 0
    assert done.stdout == (
        "vllm-code: queued, 2nd in line. WAITS_FOR_SERVICE: needs 1 GPU with 20 GB. n3 RTX 3090 is held by "
        "vllm, a service without an end. Stop vllm, or ask for 16 GB to start now on n4.\n"
    )
    queue = run("queue").stdout
    assert "vllm-code" in queue
    assert "1 GPU, 20 GB" in queue
    assert "WAITS_FOR_SERVICE" in run("workload", "list").stdout
    shown = run("workload", "show", "vllm-code").stdout
    assert "n3 RTX 3090 is held by vllm" in shown
    assert re.search(r"^owner +admin$", shown, re.MULTILINE)


def test_what_can_never_fit_is_refused(run, control):
    done = run("deploy", "vllm", "--vram", "80GB")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "refused: NO_DEVICE_LARGE_ENOUGH: vram 80GB, the largest GPU here has 24 GB (n3, RTX 3090).\n"
    )
    assert not control.workloads.rows
    problem = json.loads(run("deploy", "vllm", "--vram", "80GB", "-o", "json").stderr)
    assert problem["code"] == "NO_DEVICE_LARGE_ENOUGH"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("deploy", "nothing-like-it"), 1, ["nothing-like-it"]),
        (
            ("deploy", "ollama", "--vram", "16 gigs"),
            1,
            ["--vram 16 gigs", "a VRAM size such as 16GB"],
        ),
        (("deploy", "ollama", "--vram", "-1GB"), 1, ["--vram -1GB"]),
        (("deploy", "ollama", "--gpus", "0"), 1, ["--gpus 0"]),
        (("deploy", "ollama", "--name", "No_Label"), 1, ["--name No_Label"]),
        (("deploy", "ollama", "--set", "model"), 2, ["--set model", "NAME=VALUE"]),
        (("deploy", "ollama", "--set", "a=1", "--set", "a=2"), 2, ["twice"]),
        (("deploy", "ollama", "--wait=soon"), 2, ["--wait=soon", "10m"]),
        (("deploy", "blender-render", "--set", "frames=10-1"), 1, ["frames=10-1"]),
        (("deploy", "./none.yaml"), 2, ["none.yaml", "No such file"]),
        (("deploy",), 2, ["Missing argument"]),
        (("deploy", "ollama", "--colour"), 2, ["--colour"]),
        (("nonsense",), 2, ["nonsense"]),
        (("workload", "show", "nothing"), 1, ["nothing"]),
        (("workload", "priority", "x", "urgent"), 1, ["priority", "urgent"]),
        (("cluster", "adopt", "x", "--kubeconfig", "none"), 2, ["none", "No such file"]),
        (("replay", "none.json"), 2, ["none.json"]),
        (("workload", "delete", "x", "--volumes"), 2, ["--yes"]),
        (("user", "add", "x"), 2, ["--password-file"]),
    ],
)
def test_faults_have_a_sentence_and_an_exit_code(run, control, args, code, words):
    done = run(*args)
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not control.workloads.rows


def test_every_fault_has_its_line(run, tmp_path):
    (tmp_path / "x.yaml").write_text("name: X_X\nkind: servce\nimage: 'a b'\n")
    done = run("deploy", "x.yaml")
    assert done.returncode == 1
    assert "refused: 3 faults:" in done.stderr
    for line in ("line 1: name X_X", "line 2: kind servce", "line 3: image a b"):
        assert line in done.stderr


def test_a_file_with_options_and_from_standard_input(run, control, tmp_path):
    text = "name: mine\nkind: service\nimage: nginx\ngpu: {vram: 8GB}\n"
    (tmp_path / "mine.yaml").write_text(text)
    assert "n4, RTX A4000 (16 GB asked)" in run("deploy", "mine.yaml", "--vram", "16GB").stdout
    assert run("deploy", "-", "--name", "other", stdin=text).returncode == 0
    assert sorted(w.name for w in control.workloads.rows.values()) == ["mine", "other"]
    done = run("plan", "mine.yaml")
    assert done.stdout.startswith("mine: would start now on n3, RTX 3060 (8 GB asked)")
    assert len(control.workloads.rows) == 2


def test_dry_run_stores_nothing(run, control):
    done = run("deploy", "ollama", "--dry-run")
    assert done.stdout == "ollama: would start now on n5, GTX 1070 (8 GB asked)\n"
    assert not control.workloads.rows


def test_the_wait_has_an_end(run):
    run("deploy", "vllm")
    done = run("deploy", "vllm", "--name", "late", "--wait=1s")
    assert done.returncode == 1
    assert "late: queued" in done.stderr
    assert "it goes on by itself" in done.stderr


def test_a_failed_one_ends_the_wait_with_its_reason(served, control, follow):
    process = follow("deploy", "web", "--wait")
    row = until(lambda: next(iter(control.workloads.rows.values()), None), "it was not deployed")
    why = Reason(Code.IMAGE_PULL_FAILED, "registry said: not found", "Check the name of the image.")
    served.do(lambda: control.workloads.put(replace(row, state=State.FAILED, reason=why)))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "web: failed. IMAGE_PULL_FAILED: registry said: not found Check the name" in err
    assert out == ""


def test_ctrl_c_leaves_the_workload_and_says_so(control, follow):
    process = follow("deploy", "web", "--wait")
    until(lambda: control.workloads.rows, "it was not deployed")
    until(lambda: control.feed._listeners, "it does not listen")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "only the wait is over" in err
    assert "Traceback" not in err
    assert len(control.workloads.rows) == 1


def test_a_server_that_is_away(run):
    done = run("gpus", PODWARDEN_SERVER="http://127.0.0.1:9")
    assert done.returncode == 3
    assert "cannot be reached" in done.stderr
    assert run("gpus", PODWARDEN_SERVER="ftp://x").returncode == 2


def test_something_that_is_no_podwarden(run, tmp_path):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *args) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as other:
        threading.Thread(target=other.serve_forever).start()
        done = run("gpus", PODWARDEN_SERVER=f"http://127.0.0.1:{other.server_port}")
        other.shutdown()
    assert done.returncode == 3
    assert "not as PodWarden does" in done.stderr


def test_a_wrong_token_says_to_log_in(run):
    done = run("gpus", PODWARDEN_TOKEN="pw_wrong")
    assert done.returncode == 1
    assert "podwarden login" in done.stderr


def test_login_keeps_a_token_for_its_server_only(run, served, control, tmp_path):
    plain = {"PODWARDEN_TOKEN": "", "PODWARDEN_SERVER": ""}
    done = run(
        "login",
        served.url,
        "--name",
        "admin",
        "--password-file",
        "-",
        stdin="right horse\n",
        **plain,
    )
    assert done.returncode == 0, done.stderr
    assert "as admin (admin)" in done.stdout
    file = tmp_path / "config" / "podwarden" / "client.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not any(t.session for t in control.access.secrets.values()), "the session was ended"
    assert run("gpus", **plain).returncode == 0
    token = json.loads(file.read_text())["servers"][served.url]["token"]
    assert token not in done.stdout + done.stderr
    elsewhere = served.url.replace("127.0.0.1", "localhost")
    assert run("gpus", PODWARDEN_TOKEN="", PODWARDEN_SERVER=elsewhere).returncode == 1
    wrong = run(
        "login", served.url, "--name", "admin", "--password-file", "-", stdin="no\n", **plain
    )
    assert wrong.returncode == 1
    assert "4 tries left" in wrong.stderr


def test_a_token_from_a_file(run, environment, tmp_path):
    (tmp_path / "token").write_text(environment["PODWARDEN_TOKEN"] + "\n")
    assert (
        run("gpus", PODWARDEN_TOKEN="", PODWARDEN_TOKEN_FILE=str(tmp_path / "token")).returncode
        == 0
    )


def test_a_log_goes_raw_into_a_pipe_and_harmless_to_a_terminal(run, environment, control, tmp_path):
    run("deploy", "web")
    control.workloads.lines = ["\x1b]0;owned\x07text", "a\tb", "\u202egnp"]
    assert run("workload", "logs", "web").stdout == "\x1b]0;owned\x07text\na\tb\n\u202egnp\n"
    master, slave = os.openpty()
    with subprocess.Popen([*PODWARDEN, "workload", "logs", "web"], stdout=slave, env=environment):
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:
            pass  # the terminal's other end is closed
    os.close(master)
    assert b"\x1b" not in shown
    assert rb"\x1b]0;owned\x07text" in shown
    assert b"a\tb" in shown
    assert rb"\u202egnp" in shown


def test_texts_of_the_server_do_not_drive_the_terminal(run, served, control):
    made = json.loads(run("deploy", "web", "-o", "json").stdout)["workload"]
    row = control.workloads.rows[made["id"]]
    served.do(lambda: control.workloads.put(replace(row, owner="\x1b[2Jevil")))
    for args in (
        ("workload", "list"),
        ("workload", "show", "web"),
        ("workload", "show", "web", "-o", "json"),
    ):
        done = run(*args)
        assert "\x1b" not in done.stdout
        assert "evil" in done.stdout


def test_changes_from_the_command_line(run, control):
    run("deploy", "ollama")
    row = next(iter(control.workloads.rows.values()))
    control.workloads.run(row.id)
    assert "UPDATE_NEEDS_DOWNTIME" in run("workload", "update", "ollama", "--vram", "6GB").stderr
    done = run("workload", "update", "ollama", "--vram", "6GB", "--recreate")
    assert done.stdout == "ollama: revision 2, with a short outage.\n"
    assert control.workloads.rows[row.id].spec.gpu.vram_mib == 6144
    assert run("workload", "rollback", "ollama", "--to", "1").returncode == 0
    assert control.workloads.rows[row.id].spec.gpu.vram_mib == 8192
    assert run("workload", "priority", "ollama", "high").returncode == 0
    assert control.workloads.rows[row.id].spec.priority.word == "high"
    assert "admin deployed ollama" in run("workload", "events", "ollama").stdout
    assert "ollama: stopping" in run("workload", "stop", "ollama").stdout
    assert "ollama: queued" in run("workload", "start", "ollama").stdout
    assert "is being deleted" in run("workload", "delete", "ollama").stdout
    assert not control.workloads.rows


def test_users_tokens_and_clusters(run, tmp_path):
    assert run("user", "add", "new", "--password-file", "-", stdin="long enough\n").returncode == 0
    assert "new" in run("user", "list").stdout
    assert run("user", "passwd", "new", "--password-file", "-", stdin="longer\n").returncode == 0
    assert run("user", "remove", "new").returncode == 0
    secret = run("token", "create", "ci", "--days", "3")
    assert secret.stdout.startswith("pw_")
    listed = json.loads(run("token", "list", "-o", "json").stdout)
    made = next(t for t in listed if t["label"] == "ci")
    assert run("gpus", PODWARDEN_TOKEN=secret.stdout.strip()).returncode == 0
    assert run("token", "revoke", made["id"]).returncode == 0
    assert run("gpus", PODWARDEN_TOKEN=secret.stdout.strip()).returncode == 1
    (tmp_path / "kc").write_text("apiVersion: v1\n")
    done = run("cluster", "adopt", "home", "--kubeconfig", "kc")
    assert "Taken over 1 workload: ollama." in done.stdout
    assert "home" in run("cluster", "list").stdout
    assert "n5" in run("cluster", "show", "demo").stdout
    assert run("cluster", "kubeconfig", "demo").stdout == "apiVersion: v1\n"
    assert run("cluster", "remove", "home").returncode == 0


def test_snapshot_and_replay(run, tmp_path):
    assert run("snapshot", "--file", "s.json").returncode == 0
    first = run("replay", "s.json", "-o", "json")
    assert first.returncode == 0, first.stderr
    assert (
        first.stdout
        == run("replay", "s.json", "-o", "json", PODWARDEN_SERVER="http://127.0.0.1:9").stdout
    )
    (tmp_path / "bad.json").write_text('{"format": "podwarden/snapshot/1", "data": {"x": 1}}')
    bad = run("replay", "bad.json")
    assert bad.returncode == 2
    assert "Traceback" not in bad.stderr


def test_watch_prints_again_at_a_change(served, control, follow):
    process = follow("gpus", "--watch")
    assert "NODE" in process.stdout.readline()
    until(lambda: control.feed._listeners, "it does not listen")

    async def deploy():
        spec = control.catalogue.resolve("ollama")
        actor = control.access.people["admin"]
        done = await control.workloads.submit(actor, spec)
        control.workloads.run(done.workload.id)

    served.do(deploy)
    assert any("ollama (dedicated)" in process.stdout.readline() for _ in range(20))


def test_completion_knows_the_workloads(run):
    run("deploy", "ollama")
    done = run(
        _PODWARDEN_COMPLETE="complete_bash", COMP_WORDS="podwarden workload show ol", COMP_CWORD="3"
    )
    assert "ollama" in done.stdout
    away = run(
        _PODWARDEN_COMPLETE="complete_bash",
        COMP_WORDS="podwarden workload show ol",
        COMP_CWORD="3",
        PODWARDEN_SERVER="http://127.0.0.1:9",
    )
    assert away.stdout.strip() == ""
    assert "Traceback" not in away.stderr


def test_a_closed_pipe_is_no_error(environment):
    done = subprocess.run(
        f"{PODWARDEN[0]} template list | head -1",
        shell=True, capture_output=True, text=True, env=environment, timeout=20, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr


COMPOSE = """\
services:
  app:
    image: example/app:1
    env_file: [app.env]
    privileged: true
  db: {image: "postgres:16", environment: {A: "${A}"}}
"""


def test_a_compose_file_with_the_files_beside_it(run, control, tmp_path):
    (tmp_path / "docker-compose.yml").write_text(COMPOSE)
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / "app.env").write_text("LEVEL=info\n")
    shown = run("deploy", "docker-compose.yml", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "app: would start now" in shown.stdout
    assert "Not carried over:\n  line 5: services.app.privileged" in shown.stderr
    assert control.workloads.rows == {}
    done = run("deploy", "docker-compose.yml", "-o", "json")
    assert done.returncode == 0, done.stderr
    specs = [s["workload"]["spec"] for s in json.loads(done.stdout)["services"]]
    assert [spec["env"] for spec in specs] == [{"LEVEL": "info"}, {"A": "1"}]
    assert len(control.workloads.rows) == 2


def test_a_compose_file_that_is_too_large_is_refused_before_it_is_sent(run, tmp_path):
    body = "".join(f"  s{n}:\n    image: a/b:1\n    restart: always\n" * 2 for n in range(10_000))
    (tmp_path / "compose.yaml").write_text("services:\n" + body)
    answer = run("deploy", "compose.yaml")
    assert answer.returncode == 2
    assert "at most 512 KiB of a Compose file, with at most 50 services" in answer.stderr


def test_made_secrets_are_printed_once(run, control):
    control.workloads.made = (Made("pg-password", "password", "Password of pg", "s3cret"),)
    done = run("deploy", "web")
    assert done.stdout.startswith("Made for it, shown only this once:\n  pg-password  s3cret")
    shown = run("workload", "show", "web")
    assert "s3cret" not in shown.stdout + shown.stderr


def test_fit_as_a_table(run):
    shown = run("fit")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0].split() == ["NAME", "ASKS", "FOR", "NOW", "IF", "EMPTY"]
    assert "would start now" in shown.stdout
