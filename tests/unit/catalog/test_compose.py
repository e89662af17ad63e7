"""Compose files as people have them: what becomes of each, and that nothing of them is dropped in silence."""

import textwrap
import time
from pathlib import Path

import pytest

from podwarden.catalog import (
    Overrides,
    is_compose,
    read_compose,
    wanted_env_files,
)
from podwarden.catalog.compose import MOST_SERVICES
from podwarden.catalog.compose_data import DISK
from podwarden.domain.document import from_document, to_document
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import Expose, Kind, VolumeKind
from podwarden.errors import Invalid, Refused

FRIGATE = """\
version: "3.9"
services:
  frigate:
    container_name: frigate
    privileged: true # this may not be necessary for all setups
    restart: unless-stopped
    stop_grace_period: 30s
    image: ghcr.io/blakeblackshear/frigate:0.17.1-tensorrt
    shm_size: "512mb"
    devices:
      - /dev/bus/usb:/dev/bus/usb
      - /dev/nvidia0:/dev/nvidia0
    volumes:
      - /etc/localtime:/etc/localtime:ro
      - ./config:/config
      - /mnt/cameras:/media/frigate
      - type: tmpfs
        target: /tmp/cache
        tmpfs:
          size: 1000000000
    ports:
      - "8971:8971"
      - "127.0.0.1:5000:5000"
      - "8554:8554"
      - "8555:8555/tcp"
      - "8555:8555/udp"
    environment:
      FRIGATE_RTSP_PASSWORD: "${CAMERA_PASSWORD:?set it}"
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]
"""

IMMICH = """\
name: immich
services:
  immich-server:
    container_name: immich_server
    image: ghcr.io/immich-app/immich-server:${IMMICH_VERSION:-v2.7.5}
    volumes:
      - ${UPLOAD_LOCATION}:/data
      - /etc/localtime:/etc/localtime:ro
    env_file:
      - .env
    ports:
      - '2283:2283'
    depends_on:
      - redis
      - database
    restart: always
    healthcheck:
      disable: false
  immich-machine-learning:
    container_name: immich_machine_learning
    image: ghcr.io/immich-app/immich-machine-learning:${IMMICH_VERSION:-v2.7.5}-cuda
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities:
                - gpu
    volumes:
      - model-cache:/cache
    env_file:
      - .env
    restart: always
  redis:
    container_name: immich_redis
    image: docker.io/valkey/valkey:8-bookworm@sha256:a137a2b60aca1a75130022d6bb96af423fefae4eb55faf395732db3544803280
    healthcheck:
      test: redis-cli ping || exit 1
    restart: always
  database:
    container_name: immich_postgres
    image: ghcr.io/immich-app/postgres:14-vectorchord0.4.3-pgvectors0.2.0
    environment:
      POSTGRES_PASSWORD: ${DB_PASSWORD}
      POSTGRES_USER: ${DB_USERNAME}
      POSTGRES_DB: ${DB_DATABASE_NAME}
      POSTGRES_INITDB_ARGS: '--data-checksums'
    volumes:
      - ${DB_DATA_LOCATION}:/var/lib/postgresql/data
    shm_size: 128mb
    restart: always
volumes:
  model-cache:
"""
IMMICH_ENV = """\
# The location where your uploaded files are stored
UPLOAD_LOCATION=./library
DB_DATA_LOCATION=./postgres

# TZ=Etc/UTC
IMMICH_VERSION=v2.7.5
DB_PASSWORD="pass word" # quoted
DB_USERNAME=postgres
DB_DATABASE_NAME='immich'
export GREETING=hello ${DB_USERNAME}   # a comment
"""

OPEN_WEBUI = """\
x-logging: &logging
  logging: {driver: local}
services:
  ollama:
    <<: *logging
    volumes:
      - ollama:/root/.ollama
    container_name: ollama
    pull_policy: always
    tty: true
    restart: unless-stopped
    image: ollama/ollama:${OLLAMA_DOCKER_TAG-latest}
    runtime: nvidia
    environment: [OLLAMA_KEEP_ALIVE=24h, NVIDIA_VISIBLE_DEVICES=all]
  open-webui:
    <<: *logging
    build:
      context: .
    image: ghcr.io/open-webui/open-webui:${WEBUI_DOCKER_TAG-main}
    volumes:
      - open-webui:/app/backend/data
    depends_on:
      ollama: {condition: service_healthy}
    ports:
      - ${OPEN_WEBUI_PORT-3000}:8080
    environment:
      - 'OLLAMA_BASE_URL=http://ollama:11434'
      - 'WEBUI_SECRET_KEY='
    extra_hosts:
      - host.docker.internal:host-gateway
    restart: unless-stopped
volumes:
  ollama: {}
  open-webui: {}
"""

JELLYFIN = """\
services:
  jellyfin:
    image: jellyfin/jellyfin:10.11.8
    user: 1000:1000
    network_mode: 'host'
    volumes:
      - /srv/jellyfin/config:/config
      - cache:/cache
      - type: bind
        source: /mnt/films
        target: /media
        read_only: true
    gpus: all
    restart: 'unless-stopped'
    healthcheck:
      test: ["CMD", "curl", "-f", "http://localhost:8096/health"]
      interval: 30s
      timeout: 5s
      start_period: 1m30s
    extra_hosts:
      - 'host.docker.internal:host-gateway'
    labels: {traefik.enable: "true"}
    logging: {driver: json-file}
volumes:
  cache:
    driver_opts: {type: nfs}
"""


def compose(text, **given):
    return read_compose(textwrap.dedent(text), "docker-compose.yml", **given)


def one(text, **given):
    """The only service of a file whose lines stand below `services: web:`."""
    body = textwrap.indent(textwrap.dedent(text), "    ")
    plan = read_compose(f"services:\n  web:\n{body}", "c.yml", **given)
    return plan, plan.specs[0]


def said(found):
    return [(problem.line, problem.field, problem.fix) for problem in found]


def places(found):
    return {problem.field.removeprefix("services.") for problem in found}


def faults(text, **given):
    with pytest.raises(Invalid) as caught:
        one(text, **given)
    return [(p.line, p.field, p.fix) for p in caught.value.problems]


def test_frigate():
    plan = read_compose(
        FRIGATE,
        "docker-compose.yml",
        variables={"CAMERA_PASSWORD": "x$y"},
        storages={"/mnt/cameras": "media:cams"},
    )
    (spec,) = plan.specs
    assert spec.gpu == Request(1)
    assert spec.shm_mib == 512
    assert spec.env == (("FRIGATE_RTSP_PASSWORD", "x$y"),)
    assert [(p.port, p.protocol, p.expose) for p in spec.ports] == [
        (8971, "TCP", Expose.LAN),
        (5000, "TCP", Expose.CLUSTER),
        (8554, "TCP", Expose.LAN),
        (8555, "TCP", Expose.LAN),
        (8555, "UDP", Expose.LAN),
    ]
    assert [(v.path, v.kind, v.storage, v.subpath) for v in spec.volumes] == [
        ("/config", VolumeKind.DISK, "", ""),
        ("/media/frigate", VolumeKind.STORAGE, "media", "cams"),
        ("/tmp/cache", VolumeKind.SCRATCH, "", ""),
    ]
    assert spec.devices == ("/dev/bus/usb",)
    assert [(line, field) for line, field, _ in said(plan.unsupported)] == [
        (1, "version"),
        (4, "services.frigate.container_name"),
        (5, "services.frigate.privileged"),
        (7, "services.frigate.stop_grace_period"),
        (14, "services.frigate.volumes[0]"),
    ]
    notes = {(line, field.rpartition("frigate")[2]) for line, field, _ in said(plan.notes)}
    assert {(15, ".volumes[1]"), (23, ".ports[1]"), (12, ".devices[1]")} <= notes
    assert from_document(to_document(spec)) == spec


def test_a_variable_without_a_value_stops_the_file_at_its_line():
    with pytest.raises(Invalid) as caught:
        read_compose(FRIGATE, "docker-compose.yml")
    (problem,) = caught.value.problems
    assert problem.line == 28
    assert str(problem) == (
        "line 28: services.frigate.environment.FRIGATE_RTSP_PASSWORD ${CAMERA_PASSWORD}: has no value "
        "(set it): put CAMERA_PASSWORD=… into the file .env beside it"
    )
    assert str(caught.value).startswith("docker-compose.yml: ")


def test_immich_becomes_four_workloads_that_find_each_other():
    variables = {
        "UPLOAD_LOCATION": "./library", "DB_DATA_LOCATION": "./postgres", "DB_PASSWORD": "pw",
        "DB_USERNAME": "postgres", "DB_DATABASE_NAME": "immich",
    }  # fmt: skip
    assert wanted_env_files(IMMICH, "docker-compose.yml") == (".env",)
    plan = compose(
        IMMICH,
        variables=variables,
        env_files={".env": IMMICH_ENV},
        storages={"./library": "photos"},
    )
    specs = {spec.name: spec for spec in plan.specs}
    names = list(specs)
    assert set(names) == {"immich-server", "immich-machine-learning", "redis", "database"}
    assert names.index("immich-server") > max(names.index("redis"), names.index("database"))
    server, learning = specs["immich-server"], specs["immich-machine-learning"]
    assert server.image == "ghcr.io/immich-app/immich-server:v2.7.5"
    env = dict(server.env)
    assert env["DB_PASSWORD"] == "pass word"
    assert env["DB_DATABASE_NAME"] == "immich"
    assert env["GREETING"] == "hello postgres"
    assert (server.volumes[0].kind, server.volumes[0].storage) == (VolumeKind.STORAGE, "photos")
    assert server.gpu is None
    assert learning.gpu == Request(1)
    assert specs["redis"].health.command == ("/bin/sh", "-c", "redis-cli ping || exit 1")
    assert specs["database"].shm_mib == 128
    assert dict(specs["database"].env)["POSTGRES_PASSWORD"] == "pw"
    assert {p.value for p in plan.unsupported if p.field.endswith("container_name")} == {
        "immich_server", "immich_machine_learning", "immich_redis", "immich_postgres",
    }  # fmt: skip


def test_an_env_file_that_is_not_given_stops_the_file():
    with pytest.raises(
        Invalid, match=r"line 10: services\.immich-server\.env_file\[0\] \.env: this"
    ):
        compose(IMMICH, variables=dict.fromkeys(
            ["UPLOAD_LOCATION", "DB_DATA_LOCATION", "DB_PASSWORD", "DB_USERNAME", "DB_DATABASE_NAME"], "./x"
        ))  # fmt: skip


def test_open_webui_with_ollama():
    plan = compose(OPEN_WEBUI)
    ollama, webui = plan.specs
    assert (ollama.name, webui.name) == ("ollama", "open-webui")
    assert ollama.gpu == Request(1)
    assert webui.gpu is None
    assert ollama.env == (("OLLAMA_KEEP_ALIVE", "24h"),)
    assert dict(webui.env)["WEBUI_SECRET_KEY"] == ""
    assert ollama.ports == ()
    assert [(p.port, p.expose) for p in webui.ports] == [(8080, Expose.LAN)]
    notes = {p.field: p.fix for p in plan.notes}
    assert notes["services.open-webui.ports[0]"] == "answers on port 8080, its own, not on 3000"
    assert "no fixed version" in notes["services.ollama.image"]
    left = places(plan.unsupported)
    assert {"open-webui.build", "open-webui.extra_hosts", "ollama.tty", "ollama.logging"} <= left
    shared = compose(OPEN_WEBUI, overrides=Overrides(sharing="shared", vram="6GB", priority="high"))
    assert shared.specs[0].gpu == Request(1, 6144, Sharing.SHARED)
    assert shared.specs[1].gpu is None
    assert {spec.priority.word for spec in shared.specs} == {"high"}


def test_jellyfin():
    plan = compose(JELLYFIN, storages={"/mnt/films": "media:films", "cache": "scratchpad"})
    (spec,) = plan.specs
    assert spec.gpu == Request(1)
    assert [(v.path, v.kind, v.storage, v.read_only) for v in spec.volumes] == [
        ("/config", VolumeKind.DISK, "", False),
        ("/cache", VolumeKind.STORAGE, "scratchpad", False),
        ("/media", VolumeKind.STORAGE, "media", True),
    ]
    health = spec.health
    assert health.command == ("curl", "-f", "http://localhost:8096/health")
    assert (health.period_s, health.startup_s) == (30, 600)
    assert places(plan.unsupported) == {
        "jellyfin.user", "jellyfin.network_mode", "jellyfin.healthcheck.timeout",
        "jellyfin.extra_hosts", "jellyfin.labels", "jellyfin.logging", "volumes.cache.driver_opts",
    }  # fmt: skip


# The attributes of a service in the Compose specification, each with a value it may have.
EVERY_KEY = {
    "annotations": "{a: b}", "attach": "false", "blkio_config": "{weight: 300}", "build": ".",
    "cap_add": "[ALL]", "cap_drop": "[ALL]", "cgroup": "host", "cgroup_parent": "m", "command": "run it",
    "configs": "[c]", "container_name": "box", "cpu_count": "2", "cpu_percent": "50", "cpu_period": "20",
    "cpu_quota": "50", "cpu_rt_period": "4", "cpu_rt_runtime": "4", "cpu_shares": "73", "cpus": "0.5",
    "cpuset": "0,1", "credential_spec": "{file: c}", "depends_on": "[other]", "deploy": "{replicas: 2}",
    "develop": "{watch: []}", "device_cgroup_rules": "['c 1:3 mr']", "devices": "[/dev/dri]",
    "dns": "8.8.8.8", "dns_opt": "[use-vc]", "dns_search": "example.com", "domainname": "d",
    "driver_opts": "{a: b}", "entrypoint": "/start", "env_file": "[{path: gone.env, required: false}]",
    "environment": "{A: b}", "expose": "['3000']", "external_links": "[redis]", "extra_hosts": "['a:1.2.3.4']",
    "gpus": "all", "group_add": "[mail]", "healthcheck": "{test: ok}", "hostname": "h", "init": "true",
    "ipc": "host", "isolation": "default", "label_file": "l", "labels": "{a: b}", "links": "[db]",
    "logging": "{driver: none}", "mac_address": "'02:42:ac:11:65:43'", "mem_limit": "1g",
    "mem_reservation": "1g", "mem_swappiness": "1", "memswap_limit": "2g", "models": "[m]",
    "network_mode": "host", "networks": "[n]", "oom_kill_disable": "true", "oom_score_adj": "100",
    "pid": "host", "pids_limit": "10", "platform": "linux/arm64", "ports": "['80:80']",
    "post_start": "[{command: x}]", "pre_stop": "[{command: x}]", "privileged": "true",
    "provider": "{type: x}", "pull_policy": "always", "read_only": "true", "restart": "'no'",
    "runtime": "nvidia", "scale": "2", "secrets": "[s]", "security_opt": "[x]", "shm_size": "1g",
    "stdin_open": "true", "stop_grace_period": "5s", "stop_signal": "SIGUSR1", "storage_opt": "{size: 1G}",
    "sysctls": "{a: 1}", "tmpfs": "/run", "tty": "true", "ulimits": "{nproc: 1}",
    "use_api_socket": "true", "user": "1000", "userns_mode": "host", "uts": "host", "volumes": "['d:/data']",
    "volumes_from": "[other]", "working_dir": "/x", "what_comes_next": "1",
}  # fmt: skip


@pytest.mark.parametrize("key", EVERY_KEY)
def test_no_key_is_dropped_in_silence(key):
    """With the key, the workload differs or a remark names the key and its line."""
    rest = "volumes: {d: }\n"
    plain = compose(f"services:\n  web:\n    image: a:1.2\n{rest}")
    plan = compose(f"services:\n  web:\n    image: a:1.2\n    {key}: {EVERY_KEY[key]}\n{rest}")
    remarks = [
        p
        for p in (*plan.notes, *plan.unsupported)
        if p.field.startswith(f"services.web.{key}") and p.line == 4
    ]
    assert plan.specs != plain.specs or remarks


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("gpus: all", 1),
        ("gpus: [{count: 2}, {driver: nvidia, device_ids: ['3']}]", 3),
        ("runtime: nvidia", 1),
        ("runtime: nvidia\nenvironment: [NVIDIA_VISIBLE_DEVICES=none]", None),
        ("runtime: runc", None),
        ("devices: ['nvidia.com/gpu=all']", 1),
        ("deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}", 1),
        ("deploy: {resources: {reservations: {devices: [{device_ids: ['0', '2'], capabilities: [gpu]}]}}}", 2),
        ("deploy: {resources: {reservations: {devices: [{driver: amd, capabilities: [gpu]}]}}}", None),
        ("runtime: nvidia\ngpus: [{count: '2'}]", 2),
    ],
)  # fmt: skip
def test_every_way_to_ask_for_gpus(text, count):
    _, spec = one(f"image: a:1\n{text}")
    assert (spec.gpu.count if spec.gpu else None) == count


def test_what_the_numbers_of_gpus_become_is_said():
    plan, _ = one(
        "image: a:1.2\ngpus: [{device_ids: ['3']}]\nenvironment: [CUDA_VISIBLE_DEVICES=1]"
    )
    fixes = [p.fix for p in plan.notes]
    assert sum("PodWarden chooses the GPUs" in fix for fix in fixes) == 2
    assert any("1 whole GPU of any size: give --vram" in fix for fix in fixes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ports: ['80']", [(80, "TCP", "lan")]),
        ("ports: [80]", [(80, "TCP", "lan")]),
        ("ports: ['8080:80']", [(80, "TCP", "lan")]),
        ("ports: ['0.0.0.0:80:80/udp']", [(80, "UDP", "lan")]),
        ("ports: ['[::1]:80:80']", [(80, "TCP", "cluster")]),
        ("ports: ['80-82:80-82']", [(80, "TCP", "lan"), (81, "TCP", "lan"), (82, "TCP", "lan")]),
        (
            "ports: [{target: 80, published: '8080', protocol: tcp, mode: host}]",
            [(80, "TCP", "lan")],
        ),
        ("ports: [{target: 80, host_ip: 127.0.0.1, published: 80}]", [(80, "TCP", "cluster")]),
        ("expose: ['3000', '53/udp']", [(3000, "TCP", "cluster"), (53, "UDP", "cluster")]),
        ("ports: ['80:80']\nexpose: [80]", [(80, "TCP", "lan")]),
    ],
)
def test_ports(text, expected):
    _, spec = one(f"image: a:1\n{text}")
    assert [(p.port, p.protocol, str(p.expose)) for p in spec.ports] == expected


def test_two_services_never_open_the_same_port():
    plan = compose("""\
        services:
          a: {image: "a:1.0", ports: ["3000:8080"]}
          b: {image: "b:1.0", ports: ["3001:8080"]}
        """)
    assert [str(spec.ports[0].expose) for spec in plan.specs] == ["lan", "cluster"]
    (left,) = plan.unsupported
    assert (left.line, left.field) == (3, "services.b.ports[0]")
    assert left.fix.startswith("port 8080 goes to a; here b is reached by other workloads only.")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("image: a:1\nports: ['http']", "a port such as 8080, 8080:80 or 8080:80/udp"),
        ("image: a:1\nports: ['90-80']", "a range of ports whose first is not above its last"),
        ("image: a:1\nports: ['99999']", "ports[0].port 99999: a port from 1 to 65535"),
        ("image: a:1\nvolumes: ['nowhere:/data']", "no volume of that name stands under volumes at the end of the file"),
        ("image: a:1\nvolumes: ['d:/a:ro:x']", "a volume such as data:/data or ./folder:/data:ro"),
        ("image: a:1\nvolumes: [{type: bind, source: /x}]", "a volume needs a target, the folder inside"),
        ("image: a:1\nvolumes: ['./x:/proc']", "volumes[0].path /proc: a folder outside /dev, /proc and /sys; use shm for shared memory"),
        ("image: a:1\nenvironment: [A=1, '=2']", "a variable such as NAME=value"),
        ("image: a:1\nenvironment: {A: [1]}", "a variable such as NAME=value"),
        ("image: a:1\nenvironment: {PW_INDEX_VALUE: 1}", "env.PW_INDEX_VALUE: names that start with PW_ are set by PodWarden: choose another"),
        ("image: a:1\ncommand: 'sh -c \"open'", "a command whose quotes are closed"),
        ("image: a:1\nshm_size: large", "a size such as 512mb or 2g"),
        ("image: a:1\nhealthcheck: {test: [CMD]}", "a check such as [CMD, curl, -f, http://localhost] or a text"),
        ("image: a:1\nhealthcheck: {test: x, interval: often}", "a time such as 30s or 1m30s"),
        ("image: a:1\nscale: many", "a whole number"),
        ("image: a:1\nscale: 1000", "replicas 1000: a whole number from 1 to 100"),
        ("image: a:1\nenvironment: {A: 'cost $5'}", "write $$ for a dollar sign, ${NAME} for a variable"),
        ("image: a 1", "image a 1: an image such as ollama/ollama:0.9 or registry.home:5000/team/app@sha256:…, without spaces"),
        ("build: .", "image: is missing: give an image such as ollama/ollama:0.9 or registry.home:5000/team/app@sha256:…"),
        ("image: a:1\nextends: {service: b}", "write out what is taken from the other service"),
        ("image: a:1\nprofiles: [x]", "every service needs a profile: remove profiles from those to deploy"),
        ("image: a:1\ngpus: some", "all, or a list with count or device_ids"),
        ("image: a:1\ngpus: [one]", "a section with driver, count and capabilities"),
        ("image: a:1\nx-podwarden: big", "a section with keys of a workload file"),
        ("image: a:1\nx-podwarden: {gpu: {vram: 6 gigs}}", "gpu.vram 6 gigs: a VRAM size such as 16GB or 7.5GB, from 0.25GB up"),
    ],
)  # fmt: skip
def test_what_stops_a_file_is_named_with_its_line(text, fix):
    found = faults(text)
    assert [f for _, _, f in found] == [fix]
    assert all(line and line >= 2 for line, _, _ in found)


def test_all_faults_are_named_at_once_in_order():
    found = faults("image: a b\nports: [x]\nshm_size: y\nenvironment: {A: '${B}'}")
    assert [line for line, _, _ in found] == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "one"), ("$A", "one"), ("${A:-x}", "one"), ("${E:-x}", "x"), ("${E-x}", ""),
        ("${N-x}", "x"), ("${N:-${A}}", "one"), ("${A:+x}", "x"), ("${N:+x}", ""), ("${E+x}", "x"),
        ("$$A", "$A"), ("$${A}", "${A}"), ("a-$A-${A}b", "a-one-oneb"), ("${N:-}", ""),
        ("${N-:2283:2283}", ":2283:2283"), ("cost $$5", "cost $5"),
    ],
)  # fmt: skip
def test_variables_in_values(text, value):
    _, spec = one(f"image: a:1\nenvironment: {{X: '{text}'}}", variables={"A": "one", "E": ""})
    assert dict(spec.env)["X"] == value


def test_variables_taken_from_outside_by_their_name_alone():
    plan, spec = one("image: a:1.0\nenvironment: [A, B]", variables={"A": "1"})
    assert spec.env == (("A", "1"),)
    assert [(p.line, p.value) for p in plan.unsupported] == [(4, "B")]


def test_env_files_go_before_environment_and_later_ones_before_earlier():
    _, spec = one(
        "image: a:1.0\nenv_file: [a.env, {path: b.env, required: false}, {path: c.env, required: false}]\n"
        "environment: {C: here}",
        env_files={"a.env": "A=1\nB=1\nC=1\n", "b.env": "B=2\nC=2\nD='${A}'\nE=\"a\\nb\"\n"},
    )
    assert dict(spec.env) == {"A": "1", "B": "2", "C": "here", "D": "${A}", "E": "a\nb"}
    assert (
        "line 2 of that file"
        in faults("image: a:1\nenv_file: a.env", env_files={"a.env": "A=1\n!!\n"})[0][2]
    )


def test_command_entrypoint_and_limits():
    _, spec = one("""\
        image: a:1.0
        entrypoint: /bin/run --it
        command: ["serve", "a b"]
        mem_limit: 1.5g
        cpus: 0.5
        deploy: {replicas: 2, resources: {limits: {cpus: '2', memory: 3G}, reservations: {memory: 1G}}}
        """)
    assert spec.command == ("/bin/run", "--it")
    assert spec.args == ("serve", "a b")
    assert (spec.cpu_milli, spec.memory_mib, spec.replicas) == (2000, 3072, 2)


def test_work_without_a_limit_gets_one_and_says_so():
    plan, spec = one("image: a:1.0")
    assert spec.memory_mib == 2048
    assert "may take 2Gi of memory" in plan.notes[0].fix
    assert one("image: a:1.0\ngpus: all")[1].memory_mib == 8192


@pytest.mark.parametrize(
    ("restart", "kind", "retries"),
    [
        ("'no'", Kind.JOB, 0), ("no", Kind.JOB, 0), ("on-failure", Kind.JOB, 2), ("on-failure:5", Kind.JOB, 5),
        ("always", Kind.SERVICE, None), ("unless-stopped", Kind.SERVICE, None),
    ],
)  # fmt: skip
def test_what_is_not_restarted_is_a_job(restart, kind, retries):
    _, spec = one(f"image: a:1.0\nrestart: {restart}")
    assert spec.kind is kind
    assert (spec.job.retries if spec.job else None) == retries
    assert one(f"image: a:1.0\nports: ['80']\nrestart: {restart}")[1].kind is Kind.SERVICE


def test_volumes_that_cannot_be_what_they_were():
    plan = compose("""\
        services:
          a:
            image: a:1.0
            volumes:
              - both:/data
              - ./nginx.conf:/etc/nginx/nginx.conf:ro
              - /var/run/docker.sock:/var/run/docker.sock
              - /dev/dri:/dev/dri
              - {type: volume, source: both, target: /more, volume: {nocopy: true}}
          b: {image: "b:1.0", volumes: ["both:/data"], tmpfs: ["/run:size=64m", "/dev/shm"]}
        volumes: {both: }
        """)
    a, b = plan.specs
    assert [(v.name, v.path, v.kind) for v in a.volumes] == [
        ("data", "/data", VolumeKind.DISK),
        ("more", "/more", VolumeKind.DISK),
    ]
    assert [(v.path, v.kind, v.size_mib) for v in b.volumes] == [
        ("/run", VolumeKind.SCRATCH, 64),
        ("/data", VolumeKind.DISK, 20480),
    ]
    assert "is shared memory of its usual size" in {p.fix.partition(";")[0] for p in plan.notes}
    lines = {p.line: p.fix for p in plan.unsupported}
    assert "is shared by a and b" in lines[5]
    assert "--set both=STORAGE:FOLDER" in lines[5]
    assert "a single file cannot be mounted" in lines[6]
    assert "no Docker here" in lines[7]
    assert "devices and system folders" in lines[8]
    together = compose(
        """\
        services:
          a: {image: "a:1.0", volumes: ["both:/data"]}
          b: {image: "b:1.0", volumes: ["both:/data"]}
        volumes: {both: }
        """,
        storages={"both": "nas:both"},
    )
    assert {(s.volumes[0].storage, s.volumes[0].subpath) for s in together.specs} == {
        ("nas", "both")
    }
    assert together.unsupported == ()


def test_names_of_volumes_are_short_and_different():
    paths = ["/var/lib/data", "/srv/lib/data", "/1", "/_", "/" + "x" * 60, "/a/" + "x" * 60]
    _, spec = one("image: a:1.0\nvolumes: [" + ", ".join(f"'{p}'" for p in paths) + "]")
    assert [v.path for v in spec.volumes] == paths
    assert len({v.name for v in spec.volumes}) == len(paths)


@pytest.mark.parametrize(
    ("storages", "said_"),
    [
        ({"./media": "Media"}, "--set ./media=Media: a storage such as media"),
        ({"./media": "media:../x"}, "--set ./media=media:../x: a storage such as media"),
        ({"./meda": "media"}, "--set ./meda: no volume of the file has this source"),
    ],
)
def test_storages_are_checked(storages, said_):
    with pytest.raises(Invalid) as caught:
        one("image: a:1.0\nvolumes: ['./media:/media']", storages=storages)
    assert said_ in str(caught.value)


def test_options_are_named_as_the_user_typed_them():
    two = "services:\n  a: {image: 'a:1.0'}\n  b: {image: 'b:1.0'}\n"
    with pytest.raises(Invalid, match="--name x: the file has 2 services, which keep their names"):
        compose(two, overrides=Overrides(name="x"))
    with pytest.raises(Invalid, match="--vram: no service of the file asks for a GPU"):
        compose(two, overrides=Overrides(vram="6GB"))
    with pytest.raises(Invalid, match="--vram 6 gigs: a VRAM size"):
        one("image: a:1.0\ngpus: all", overrides=Overrides(vram="6 gigs"))
    with pytest.raises(Invalid, match="--vram: a shared GPU needs a budget"):
        one("image: a:1.0\ngpus: all", overrides=Overrides(sharing="shared"))
    _, spec = one("image: a:1.0\ngpus: all", overrides=Overrides(name="mine", cluster="home"))
    assert (spec.name, spec.cluster) == ("mine", "home")


def test_additions_of_a_workload_file():
    _, spec = one(
        "image: a:1.0\ngpus: all\nx-podwarden: {gpu: {vram: 6GB, sharing: shared}, priority: low}"
    )
    assert spec.gpu == Request(1, 6144, Sharing.SHARED)
    assert spec.priority.word == "low"


def test_names_and_order():
    plan = compose("""\
        services:
          My_App: {image: "a:1.0", depends_on: {db: {condition: service_started}, gone: {}}}
          9lives: {image: "a:1.0"}
          db: {image: "a:1.0"}
          tools: {image: "a:1.0", profiles: [debug]}
        """)
    assert [spec.name for spec in plan.specs] == ["s-9lives", "db", "my-app"]
    assert "is called my-app here" in next(p.fix for p in plan.notes if p.value == "My_App")
    assert {p.field for p in plan.unsupported} == {
        "services.tools.profiles",
        "services.My_App.depends_on",
    }
    with pytest.raises(Invalid, match="two services would be called my-app: rename one"):
        compose("services:\n  my_app: {image: 'a:1'}\n  my.app: {image: 'a:1'}\n")
    with pytest.raises(Invalid, match="a, b depend on each other"):
        compose(
            "services:\n  a: {image: 'a:1', depends_on: [b]}\n  b: {image: 'b:1', depends_on: [a]}\n"
        )


def test_long_names_keep_their_ends_apart():
    long = "a" * 45
    plan = compose(
        f"services:\n  {long}: {{image: 'a:1.0', depends_on: [b]}}\n  b: {{image: 'b:1.0'}}\n"
    )
    assert [spec.name for spec in plan.specs] == ["b", "a" * 40]


@pytest.mark.parametrize(
    "text",
    [
        "services:\n" + "".join(f"  s{n}:\n    image: a:1\n" for n in range(10_000)),
        "services:\n" + "".join(f"  s{n}:\n    image: a:1\n    command: {'x' * 300}\n" for n in range(10_000)),
        "{services: {" + ", ".join(f"s{n}: {{image: 'a:1'}}" for n in range(10_000)) + "}}",
    ],
    ids=["usual", "larger than a file may be", "one line"],
)  # fmt: skip
def test_a_file_of_ten_thousand_services_is_refused_at_once(text):
    start = time.perf_counter()
    with pytest.raises(Refused) as caught:
        read_compose(text, "docker-compose.yml")
    assert time.perf_counter() - start < 5
    assert caught.value.code == "COMPOSE_TOO_LARGE"
    assert str(caught.value).startswith(
        "docker-compose.yml has 10,000 services. PodWarden takes at most 50 from one Compose file: split it"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "services:\n",
        "services: []\n",
        "services: {}\n",
        "- a\n",
        "image: a:1\n",
        "services:\n  a: x\n",
    ],
)
def test_what_is_no_compose_file(text):
    with pytest.raises(Invalid):
        read_compose(text, "c.yml")


def test_compose_files_are_told_from_workload_files():
    assert is_compose(FRIGATE)
    assert is_compose("version: '2'\n'services':\n  a: {}\n")
    assert not is_compose("name: services\nimage: a:1\nenv: {services: x}\n")
    assert not is_compose("  services:\n")


def test_anchors_are_taken_and_bombs_are_not():
    plan = compose("""\
        x-base: &base {image: "a:1.0", environment: {A: "1"}}
        x-more: &more {environment: {B: "2"}, cpus: 2}
        services:
          a: {<<: *base}
          b: {<<: [*more, *base], cpus: 1}
        """)
    a, b = plan.specs
    assert a.env == (("A", "1"),)
    assert b.env == (("B", "2"),)
    assert b.cpu_milli == 1000
    wide = "x0: &x0 [" + "1, " * 50 + "]\n"
    wide += "".join(f"x{n}: &x{n} [" + f"*x{n - 1}, " * 50 + "]\n" for n in range(1, 9))
    with pytest.raises(Invalid, match="more than 50,000 entries"):
        read_compose(wide + "services: {a: {image: 'a:1'}}\n", "c.yml")
    deep = "x0: &x0 [[[[[[1]]]]]]\n"
    deep += "".join(f"x{n}: &x{n} [[[[[[*x{n - 1}]]]]]]\n" for n in range(1, 2000))
    with pytest.raises(Invalid, match="nested deeper than 32 levels"):
        read_compose(deep + "services: {a: {image: 'a:1'}}\n", "c.yml")
    with pytest.raises(Invalid, match="no anchor &b stands before it"):
        read_compose("services: {a: {image: *b}}\n", "c.yml")
    with pytest.raises(Invalid, match="a merge key"):
        read_compose("services: {a: {<<: x, image: 'a:1'}}\n", "c.yml")


def test_hostile_text_stays_text():
    plan, spec = one(
        "image: a:1.0\nenvironment: {A: '<script>\\e[31m $$(rm) \u202e'}\nlabels: ['\u202e<b>']\nx\u202e: 1"
    )
    assert dict(spec.env)["A"].startswith("<script>")
    assert all(str(p).isprintable() for p in plan.unsupported)


def test_a_flood_of_remarks_gets_a_short_answer():
    keys = "\n".join(f"k{n}: 1" for n in range(20_000))
    plan, _ = one(f"image: a:1.0\n{keys}")
    assert len(plan.unsupported) == 400


def test_the_page_about_compose_files_says_what_the_code_does():
    page = (Path(__file__).parents[3] / "docs" / "compose.md").read_text(encoding="utf-8")
    assert f"at most {MOST_SERVICES} services" in page
    assert f"disk of {DISK.removesuffix('Gi')} GiB" in page
    for key in ("gpus", "ports", "volumes", "env_file", "healthcheck", "depends_on", "x-podwarden"):
        assert f"`{key}" in page
