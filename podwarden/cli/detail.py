"""`workload show` and its neighbours, as text."""

from __future__ import annotations

import json
from typing import Any

from podwarden.cli import words
from podwarden.cli.printing import table

REACHABLE = ("starting", "running", "updating", "unhealthy")  # states in which somebody may answer


def text(w: dict[str, Any], *, simulated: bool = False) -> str:
    """simulated: its cluster is, so that nobody answers at its address."""
    urls = w["urls"] if w["state"] in REACHABLE else []
    remark = " (simulated: nobody answers there)" if simulated and urls else ""
    lines = [words.line(w)]
    if w["desire"] != "run" and w["state"] not in ("stopped", "stopping"):
        lines.append(f"It was told to {w['desire']}.")
    lines += [f"  {note['text']}" for note in (w["reason"] or {}).get("notes", [])]
    if last := (w["reason"] or {}).get("lines"):
        lines += ["The last lines of its log:", *(f"  {line}" for line in last)]
    rows = [
        ("kind", w["kind"] + (f", from template {w['template']}" if w["template"] else "")),
        ("asks for", _asks(w["spec"])),
        ("image", str(w["spec"].get("image", ""))),
        ("owner", w["owner"]),
        ("cluster", w["cluster"]),
        ("priority", w["priority"]),
        ("revision", str(w["revision"])),
        ("age", words.since(w["times"]["created_at"])),
        ("address", ", ".join(urls) + remark),
    ]
    width = max(len(name) for name, _ in rows)
    lines.append("")
    lines += [f"{name:<{width}}  {value}" for name, value in rows if value]
    if w["devices"]:
        gpus = [
            (d["node"], "" if d["index"] is None else str(d["index"]), d["model"], d["uuid"])
            for d in w["devices"]
        ]
        lines += ["", table(("NODE", "GPU", "MODEL", "UUID"), gpus)]
    return "\n".join(lines)


def _asks(spec: dict[str, Any]) -> str:
    resources = spec.get("resources") or {}
    parts = [words.request(spec)]
    if resources.get("cpu"):
        parts.append(f"{resources['cpu']} CPU")
    if resources.get("memory"):
        parts.append(f"{resources['memory']} memory")
    return ", ".join(parts)


def event(e: dict[str, Any]) -> str:
    return (
        f"{e['code']}: {e['text']}"
        if e["code"] and not e["text"].startswith(e["code"])
        else e["text"]
    )


def as_file(spec: dict[str, Any]) -> str:
    """A workload file with the same content: JSON is YAML."""
    return json.dumps(spec, ensure_ascii=False)
