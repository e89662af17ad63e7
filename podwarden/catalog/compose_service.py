"""One service of a Compose file as a workload file. Every key of it is carried over, noted or left out by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podwarden.catalog.compose_data import Ports, Volumes
from podwarden.catalog.compose_gpu import RESERVED, Gpus
from podwarden.catalog.compose_remarks import Place
from podwarden.catalog.compose_values import (
    child,
    flag,
    read_env_file,
    seconds,
    size,
    variables_of,
    whole,
    words,
)
from podwarden.domain.check import as_text

_LEFT_OUT = {
    "annotations": "annotations are not carried over",
    "attach": "the log is shown by `podwarden workload logs`",
    "blkio_config": "limits on disks are not carried over",
    "build": "nothing is built here: build the image, push it to a registry and name it in image",
    "cap_add": "rights of the host are not given out",
    "cap_drop": "a workload's rights are already few",
    "cgroup_parent": "PodWarden arranges this itself",
    "configs": "a file cannot be mounted: put it into a storage",
    "container_name": "others reach it by the name of the service",
    "credential_spec": "is for Windows only",
    "cpuset": "a workload is not bound to single cores",
    "develop": "is for development only",
    "device_cgroup_rules": "rights of the host are not given out",
    "dns": "names are looked up as the cluster does it",
    "dns_opt": "names are looked up as the cluster does it",
    "dns_search": "names are looked up as the cluster does it",
    "domainname": "others reach it by the name of the service",
    "external_links": "others reach it by the name of the service",
    "extra_hosts": "names of one's own are not carried over: use an address in environment",
    "group_add": "the program runs with the groups of its image",
    "hostname": "others reach it by the name of the service",
    "init": "the program is the first of its container",
    "isolation": "is for Windows only",
    "label_file": "labels are for programs that read them from Docker",
    "labels": "labels are for programs that read them from Docker",
    "links": "every workload reaches every other by its name",
    "logging": "PodWarden keeps the log itself",
    "mac_address": "the cluster gives the addresses",
    "mem_swappiness": "memory is not swapped",
    "memswap_limit": "memory is not swapped",
    "models": "deploy a model server and name its address in environment",
    "network_mode": "the workload gets an address of its own: open its ports with ports; for host, "
    "admins may write x-podwarden: {host_network: true}",
    "networks": "every workload reaches every other by its name",
    "oom_kill_disable": "PodWarden arranges this itself",
    "oom_score_adj": "PodWarden arranges this itself",
    "pid": "processes of the host are not shown",
    "pids_limit": "the number of processes is not limited",
    "platform": "the nodes decide which kind of image is taken",
    "post_start": "commands around the start are not run",
    "pre_stop": "commands around the stop are not run",
    "privileged": "rights of the host are not given out; devices are named under devices",
    "provider": "only images are run here",
    "pull_policy": "an image is downloaded where a node does not have it",
    "read_only": "the image's own file system may be written to",
    "secrets": "a secret is stored with PodWarden and named under secrets of a workload file",
    "security_opt": "PodWarden sets these itself",
    "stdin_open": "there is no terminal to type into",
    "stop_grace_period": "every workload has 30 seconds to end",
    "stop_signal": "a workload is stopped with SIGTERM",
    "storage_opt": "disk is asked for by volumes",
    "sysctls": "settings of the host are not changed",
    "tty": "there is no terminal to type into",
    "ulimits": "limits of the host are not changed",
    "use_api_socket": "there is no Docker here for a program to steer",
    "user": "the program runs as the user of its image",
    "userns_mode": "PodWarden sets this itself",
    "uts": "the name of the host is not shown",
    "volumes_from": "each service names its own volumes",
    "working_dir": "the program starts in the folder of its image: give absolute paths",
}


MEMORY, MEMORY_WITH_GPU = "2Gi", "8Gi"  # here each workload has a limit; Compose needs none


@dataclass(slots=True)
class Service:
    """The reader of one service. document: the workload file so far.

    variables: for `environment` entries without a value and for env files. env_files: path -> text.
    """

    name: str
    place: Place
    variables: Mapping[str, str]
    env_files: Mapping[str, str]
    ports: Ports
    volumes: Volumes
    document: dict[str, Any] = field(default_factory=dict)
    gpus: Gpus = field(default_factory=Gpus)

    def read(self) -> dict[str, Any]:
        handlers: dict[str, Callable[[Place], None]] = {
            "image": self._image,
            "command": lambda place: self._set("args", words(place)),
            "entrypoint": lambda place: self._set("command", words(place)),
            "deploy": self._deploy,
            "scale": self._replicas,
            "healthcheck": self._health,
            "tmpfs": self._tmpfs,
            "ipc": self._ipc,
            "devices": self._devices,
            "shm_size": lambda place: self._set("shm", size(place)),
            "runtime": self.gpus.runtime,
            "gpus": self.gpus.section,
            "mem_limit": lambda place: self._resource("memory", size(place)),
            "mem_reservation": lambda place: self._resource("memory", size(place), least=True),
            "cpus": lambda place: self._resource("cpu", as_text(place.value) or ""),
        }
        later = {
            "ports", "expose", "volumes", "environment", "env_file", "restart", "depends_on",
            "extends", "profiles", "x-podwarden",
        }  # fmt: skip
        for entry in self.place.items():
            key = entry.key
            if key in handlers:
                handlers[key](entry)
            elif key in _LEFT_OUT:
                entry.leave_out(_LEFT_OUT[key], entry.value)
            elif key not in later and not key.startswith("x-"):
                entry.leave_out("PodWarden does not know this key")
        self._data()
        self._environment()
        self._finish()
        return self.document

    def _set(self, key: str, value: Any) -> None:
        if value not in ("", [], None):
            self.document[key] = value

    def _section(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = self.document.setdefault(key, {})
        return found

    def _image(self, place: Place) -> None:
        text = as_text(place.value) or ""
        tag = text.rpartition("/")[2].partition(":")[2]
        if "@" not in text and tag in ("", "latest"):
            place.note("has no fixed version: each start may bring another one", text)
        self._set("image", text)

    # --- what it needs ---------------------------------------------------------------------

    def _resource(self, key: str, value: str, *, least: bool = False) -> None:
        resources = self._section("resources")
        if value and not (least and key in resources):
            resources[key] = value

    def _deploy(self, place: Place) -> None:
        for entry in place.items():
            key = entry.key
            if key == "replicas":
                self._replicas(entry)
            elif key == "resources":
                self._resources(entry)
            elif key == "restart_policy":
                entry.leave_out("services are always restarted; jobs have retries")
            elif key in ("update_config", "rollback_config"):
                entry.leave_out("PodWarden chooses the way of an update and says it before")
            elif key == "placement":
                entry.leave_out(
                    "PodWarden chooses the node; a workload file can name one with node"
                )
            elif key == "mode" and entry.value == "replicated":
                continue
            else:
                entry.leave_out("is for Docker Swarm and not carried over")

    def _replicas(self, place: Place) -> None:
        self._set("replicas", whole(place))

    def _resources(self, place: Place) -> None:
        for part in ("limits", "reservations"):
            section = child(place, part)
            for entry in section.items() if section is not None else ():
                key = entry.key
                if key == "memory":
                    self._resource("memory", size(entry), least=part == "reservations")
                elif key == "cpus":
                    text = as_text(entry.value) or ""
                    self._resource("cpu", text, least=part == "reservations")
                elif key == "devices":
                    self.gpus.reservations(entry)
                else:
                    entry.leave_out("this limit is not carried over", entry.value)

    def _devices(self, place: Place) -> None:
        kept = []
        for entry in place.entries():
            text = as_text(entry.value) or ""
            source, _, rest = text.partition(":")
            target = rest.partition(":")[0]
            if source.startswith("/dev/nvidia") or text.startswith("nvidia.com/gpu"):
                self.gpus.device(entry, text)
            elif target not in ("", source):
                entry.leave_out("a device keeps its path: name it once", text)
            elif not source.startswith("/dev/"):
                entry.leave_out("is no device below /dev", text)
            else:
                kept.append(source)
        if kept:
            place.note("only admins may deploy work with devices of the host", ", ".join(kept))
            self.document["devices"] = kept

    def _tmpfs(self, place: Place) -> None:
        for entry in place.entries():
            path, _, options = (as_text(entry.value) or "").partition(":")
            limit = next((o[5:] for o in options.split(",") if o.startswith("size=")), "")
            value: dict[str, Any] = {"type": "tmpfs", "target": path}
            if limit:
                value["tmpfs"] = {"size": limit}
            self._volumes(Place(entry.path, [value], entry.remarks))

    def _ipc(self, place: Place) -> None:
        if place.value == "host":
            self.document.setdefault("shm", "2Gi")
            place.note("becomes 2 GiB of shared memory of its own; give shm_size for more", "host")
        else:
            place.leave_out("shared memory is not shared between workloads", place.value)

    # --- data and addresses ----------------------------------------------------------------

    def _data(self) -> None:
        volumes = child(self.place, "volumes")
        if volumes is not None:
            self._volumes(volumes)
        nothing = Place(self.place.path, None, self.place.remarks)
        published, exposed = child(self.place, "ports"), child(self.place, "expose")
        ports = self.ports.read(self.name, published or nothing, exposed or nothing)
        self._set("ports", ports)

    def _volumes(self, place: Place) -> None:
        found, shm = self.volumes.read(place)
        if shm:
            self.document.setdefault("shm", shm)
        if found:
            self.document["volumes"] = [*self.document.get("volumes", []), *found]

    def _environment(self) -> None:
        found: dict[str, str] = {}
        files = child(self.place, "env_file")
        for entry in files.entries() if files is not None else ():
            found.update(self._env_file(entry))
        given = child(self.place, "environment")
        if given is not None:
            found.update(variables_of(given, self.variables))
        where = given or files or self.place
        for variable in sorted(found.keys() & RESERVED):
            self.gpus.variable(where, variable, found.pop(variable))
        self._set("env", found or None)

    def _env_file(self, entry: Place) -> dict[str, str]:
        path, must = as_text(entry.value), True
        if isinstance(entry.value, dict):
            part, required = child(entry, "path"), child(entry, "required")
            path = as_text(part.value) if part is not None else None
            must = required is None or flag(required)
        if not path:
            entry.fault("the path of a file of variables")
            return {}
        text = self.env_files.get(path)
        if text is not None:
            return read_env_file(entry, text, self.variables)
        if must:
            entry.fault(
                "this file of variables was not given: put it beside the Compose file", path
            )
        else:
            entry.note("is not there, and need not be", path)
        return {}

    # --- how it runs -----------------------------------------------------------------------

    def _health(self, place: Place) -> None:
        off, test = child(place, "disable"), child(place, "test")
        if off is not None and flag(off):
            return
        command = _test(test) if test is not None else []
        if not command:
            if test is None:
                place.leave_out(
                    "without test the image's own check is meant, which is not read here"
                )
            return
        health: dict[str, Any] = {"command": command}
        period, start = child(place, "interval"), child(place, "start_period")
        if period is not None:
            health["period"] = f"{min(max(seconds(period), 1), 3600)}s"
        if start is not None:
            health["startup"] = f"{max(seconds(start), 600)}s"
        self.document["health"] = health
        for key in ("timeout", "retries", "start_interval"):
            entry = child(place, key)
            if entry is not None:
                entry.leave_out("PodWarden sets this itself", entry.value)

    def _finish(self) -> None:
        """What depends on everything else: GPUs, service or job, additions of one's own."""
        gpu = self.gpus.request(self.place)
        if gpu:
            self.document["gpu"] = gpu
        if "memory" not in self.document.get("resources", {}):
            memory = MEMORY_WITH_GPU if gpu else MEMORY
            self._resource("memory", memory)
            self.place.note(
                f"may take {memory} of memory, since the file names no limit: mem_limit"
            )
        restart = child(self.place, "restart")
        word = (as_text(restart.value) or "") if restart is not None else "always"
        if restart is not None and self.document.get("ports") is None:
            self._job(restart, word.lower())
        elif restart is not None and word not in ("always", "unless-stopped"):
            restart.note("a service with ports is always restarted", word)
        own = child(self.place, "x-podwarden")
        if own is not None and isinstance(own.value, dict):
            self.document.update(own.value)
        elif own is not None:
            own.fault("a section with keys of a workload file")

    def _job(self, place: Place, word: str) -> None:
        found = re.fullmatch(r"on-failure(?::(\d{1,2}))?", word)
        if word in ("no", "false"):
            tries = 0
        elif found:
            tries = int(found[1] or 2)
        else:
            return
        place.note("runs to its end as a job, since it is not restarted", word)
        self.document |= {"kind": "job", "job": {"retries": tries}}
        for key in ("replicas", "health"):
            if self.document.pop(key, None) is not None:
                place.leave_out(f"a job has no {key}")


def _test(place: Place) -> list[str]:
    """`healthcheck.test`: CMD and its words, CMD-SHELL or a text for a shell, NONE."""
    if isinstance(place.value, str):
        return ["/bin/sh", "-c", place.value]
    found = words(place)
    if found[:1] == ["NONE"]:
        return []
    if found[:1] == ["CMD"] and len(found) > 1:
        return found[1:]
    if found[:1] == ["CMD-SHELL"] and len(found) == 2:
        return ["/bin/sh", "-c", found[1]]
    place.fault("a check such as [CMD, curl, -f, http://localhost] or a text")
    return []
