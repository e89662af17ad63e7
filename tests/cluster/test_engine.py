"""The engine as a program: start, certificates, restarts, crashes, stops, bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from deadline import eventually
from running import NODE_GRACE, RunningEngine, pod_spec

from podwarden.errors import Conflict, SetupFailed
from podwarden.simulator.engine import COMPONENTS, STAGES, Engine, EngineOptions
from podwarden.simulator.engine_build import default_source, engine_binary

MAPS = "/api/v1/namespaces/default/configmaps"
OPTIONS = EngineOptions(node_grace=NODE_GRACE)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """An engine that tests may break, one after the other; each leaves it running."""
    running = RunningEngine.start(tmp_path_factory.mktemp("own"))
    yield running
    running.stop()


def remember(running: RunningEngine, name: str) -> None:
    running.api.create(MAPS, {"metadata": {"name": name}, "data": {"kept": name}})


def remembers(running: RunningEngine, name: str) -> bool:
    return running.api.get(f"{MAPS}/{name}")["data"] == {"kept": name}


def events(engine: Engine) -> list[dict[str, object]]:
    return [json.loads(line) for line in engine.log.read_text().splitlines() if line[:1] == "{"]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text()


def up(data: Path | str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Runs the program itself in the foreground, for starts that must be refused."""
    return subprocess.run(
        [engine_binary(), "up", f"--data={data}", *flags],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_ready_names_server_and_kubeconfig(engine: RunningEngine) -> None:
    status = engine.engine.status()
    assert status.ready
    assert set(status.components) == set(COMPONENTS)
    last = next(e for e in events(engine.engine) if e["event"] == "ready")
    assert last["server"] == engine.server
    assert last["kubeconfig"] == str(engine.kubeconfig)
    assert 0 < float(str(last["seconds"])) < 60
    assert engine.api.text("/readyz") == "ok"


def test_versions_are_the_sources(engine: RunningEngine, node: str) -> None:
    wanted = re.search(r"k8s\.io/kubernetes (v\S+)", (default_source() / "go.mod").read_text())
    assert wanted
    assert engine.api.get("/version")["gitVersion"] == wanted[1]
    said = subprocess.run(
        [engine_binary(), "--version"], capture_output=True, text=True, check=True
    )
    versions = engine.engine.status().versions
    for part in ("engine", "kubernetes", "kine", "kwok"):
        assert versions[part] in said.stdout
    assert len(said.stdout.splitlines()) == 1
    info = engine.api.get(f"/api/v1/nodes/{node}")["status"]["nodeInfo"]
    assert info["kubeletVersion"] == f"{wanted[1]}+simulated"


def test_the_server_is_known_by_its_certificate_only(engine: RunningEngine) -> None:
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{engine.server}/readyz", trust_env=False)


def test_who_shows_no_certificate_may_nothing(engine: RunningEngine) -> None:
    authority = ssl.create_default_context(cafile=str(engine.data_dir / "pki" / "ca.crt"))
    answer = httpx.get(f"{engine.server}/api/v1/nodes", verify=authority, trust_env=False)
    assert answer.status_code == 403
    named = httpx.get(
        f"{engine.server.replace('127.0.0.1', 'localhost')}/readyz",
        verify=authority,
        trust_env=False,
    )
    assert named.status_code == 200


def test_secrets_are_closed_to_others_and_inside_the_kubeconfig(engine: RunningEngine) -> None:
    assert stat.S_IMODE(engine.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(engine.kubeconfig.stat().st_mode) == 0o600
    for path in engine.data_dir.glob("pki/*.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(engine.kubeconfig.read_text())
    fields = {*config["clusters"][0]["cluster"], *config["users"][0]["user"]}
    assert fields == {
        "server", "certificate-authority-data", "client-certificate-data", "client-key-data",
    }  # fmt: skip


def test_it_listens_on_loopback_only(engine: RunningEngine) -> None:
    ports = {f"{port:04X}" for port in engine.engine.status().ports.values()}
    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].split(":")[1] in ports
    ]
    assert len(listening) == len(ports)
    assert {address.split(":")[0] for address in listening} == {"0100007F"}


def test_the_simulator_may_not_more_than_a_kubelet(engine: RunningEngine) -> None:
    def allowed(verb: str, resource: str, group: str = "") -> bool:
        wish = {"verb": verb, "resource": resource, "group": group, "namespace": "default"}
        review = {"spec": {"user": "podwarden:kwok", "resourceAttributes": wish}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(engine.api.create(path, review)["status"]["allowed"])

    assert allowed("patch", "leases", "coordination.k8s.io")
    assert not allowed("get", "secrets")
    assert not allowed("create", "pods")
    assert not allowed("delete", "nodes")


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_killed_component_comes_back(own: RunningEngine, component: str) -> None:
    before = own.engine.kill_component(component)
    status = eventually(
        lambda: (s := own.engine.status()).ready and s.components[component].pid != before and s,
        f"{component} restarted",
        60,
    )
    assert status.components[component].restarts > 0
    assert not alive(before)
    # All of the way still works: store, scheduler, controllers, simulated node.
    name = f"after-{component}"
    own.add_node(name)
    namespace = own.add_namespace()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    own.api.create(pods, {"metadata": {"name": "p"}, "spec": pod_spec(name)})
    eventually(lambda: own.api.get(f"{pods}/p")["status"]["phase"] == "Running", "pod runs", 30)
    own.api.delete(f"/api/v1/nodes/{name}")


def test_restart_on_its_data_keeps_objects_and_address(own: RunningEngine) -> None:
    remember(own, "restart")
    own.engine.stop()
    order = [e["component"] for e in events(own.engine) if e["event"] == "component-ended"][-5:]
    assert order[-2:] == ["kube-apiserver", "kine"]
    assert own.engine.status().state == "stopped"
    own.engine.start(OPTIONS)
    assert own.engine.wait_ready().server == own.server
    assert remembers(own, "restart")


def test_a_new_kwok_takes_the_nodes_over_at_once(own: RunningEngine) -> None:
    """Left alone it would sit out the lease of the one before it: 40 s at the usual grace period."""
    usual = EngineOptions()
    own.engine.stop()
    own.engine.start(usual)
    own.engine.wait_ready()
    own.add_node("steady")
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/steady"
    first = own.api.get(lease)["spec"]
    assert first["leaseDurationSeconds"] == 40
    own.engine.kill_component("kwok")
    eventually(
        lambda: (
            (found := own.api.find(lease))
            and found["spec"]["holderIdentity"] != first["holderIdentity"]
        ),
        "lease taken over",
    )
    assert own.node_condition("steady") == "True"
    own.api.delete("/api/v1/nodes/steady")


def test_killing_the_supervisor_leaves_nothing_and_loses_nothing(own: RunningEngine) -> None:
    remember(own, "killed")
    pids = [part.pid for part in own.engine.status().components.values()]
    assert len(pids) == len(COMPONENTS)
    assert all(map(alive, pids))
    own.engine.kill()
    eventually(lambda: not any(map(alive, pids)), "components gone", 5)
    assert own.engine.status().state == "dead"
    own.engine.start(OPTIONS)
    own.engine.wait_ready()
    assert remembers(own, "killed")


def test_a_second_one_on_the_same_folder_is_refused(own: RunningEngine) -> None:
    refused = up(own.data_dir, "--no-kwok")
    assert refused.returncode == 1
    pid = own.engine.status().pid
    assert (
        f"--data {own.data_dir}: an engine is running there already (pid {pid})" in refused.stderr
    )
    with pytest.raises(Conflict):
        Engine(own.data_dir).start(OPTIONS)
    assert own.engine.status().ready


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    command = [engine_binary(), "up", f"--data={tmp_path}", "--no-kwok"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        lines = [json.loads(process.stdout.readline())]
        while lines[-1]["event"] != "ready":
            lines.append(json.loads(process.stdout.readline()))
        process.send_signal(number)
        rest = process.stdout.read().splitlines()
        assert process.wait(timeout=30) == 0
    assert json.loads(rest[-1])["event"] == "stopped"
    pids = [line["pid"] for line in lines if line["event"] == "component-started"]
    assert not any(map(alive, pids))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--port=70000"], "--port 70000: must be 0 (choose) or between 1024 and 65535"),
        (["--qps=0"], "--qps 0: must be 1 or more"),
        (
            ["--node-monitor-grace-period=1s"],
            "--node-monitor-grace-period 1s: must be between 4s and 1h",
        ),
        (["--kwok-config=/nowhere.yaml"], "--kwok-config /nowhere.yaml"),
        (["--kwok-config=x", "--no-kwok"], "cannot be used together with --no-kwok"),
        (["--prot=1"], "--prot"),
        (["now"], 'unexpected argument "now"'),
    ],
)
def test_bad_flags(tmp_path: Path, flags: list[str], sentence: str) -> None:
    refused = up(tmp_path / "data", *(flags if "kwok" in flags[0] else [*flags, "--no-kwok"]))
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    tmp_path.chmod(0o755)
    inside_a_file = up(tmp_path / "file" / "data", "--no-kwok")
    assert (
        inside_a_file.returncode,
        "choose one that you may write to" in inside_a_file.stderr,
    ) == (1, True)
    others = up(tmp_path, "--no-kwok")
    assert (others.returncode, "has other things in it (file)" in others.stderr) == (1, True)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    too_long = up(tmp_path / ("x" * 120), "--no-kwok")
    assert (too_long.returncode, "the path is too long" in too_long.stderr) == (2, True)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = up(tmp_path, "--no-kwok", f"--port={port}")
    assert refused.returncode == 1
    assert f"--port {port}: another program listens there on 127.0.0.1" in refused.stderr


def test_a_component_that_keeps_ending_stops_the_whole_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "stages.yaml").write_text(
        STAGES.read_text().replace("kind: Stage", "kind: Stagecoach")
    )
    engine = Engine(tmp_path / "data")
    engine.start(EngineOptions(stages=(tmp_path / "stages.yaml",)))
    with pytest.raises(SetupFailed, match=r"kwok ended 5 times within 1m0s(.|\n)*no stages found"):
        engine.wait_ready()
    status = engine.status()
    assert status.state == "failed"
    assert "kwok" in status.message
    assert not any(alive(part.pid) for part in status.components.values() if part.pid)
