"""What belongs to a Compose file on this machine: the file, `.env` beside it, the files of variables it names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from podwarden.cli.client import Api
from podwarden.cli.failure import USAGE, Failure
from podwarden.cli.printing import hint, say
from podwarden.cli.reading import text_of

MOST = 512 * 1024  # characters that the server takes of one file
NAMES = re.compile(r"(?:docker-)?compose(?:\.[\w-]+)?\.ya?ml")
_SERVICES = re.compile(r"(?m)^[\"']?services[\"']?\s*:")
_IMAGE = re.compile(r"(?m)^image\s*:")


def is_compose(name: str, text: str) -> bool:
    """By its name, or because it has services and is no workload file."""
    if NAMES.fullmatch(Path(name).name):
        return True
    return bool(_SERVICES.search(text)) and not _IMAGE.search(text)


def body(api: Api, what: str, order: dict[str, Any]) -> dict[str, Any]:
    """The JSON for the API. order: as for a workload file; its parameters are places for volumes."""
    text = order["file"]
    if len(text) > MOST:
        raise Failure(
            f"{order['source']} has {len(text) // 1024:,} KiB; PodWarden reads at most {MOST // 1024} KiB of a "
            "Compose file, with at most 50 services: split it into several.",
            USAGE,
        )
    names = api.post("compose", "env-files", body={"text": text, "source": order["source"]})
    folder = Path() if what == "-" else Path(what).parent
    rest = {k: v for k, v in order.items() if k not in ("file", "parameters")}
    return rest | {
        "text": text,
        "storages": order["parameters"],
        "dotenv": _text(folder / ".env"),
        "env_files": {
            # Only what stands in the file is read, whatever the server asks for.
            name: _text(folder / name)
            for name in names
            if name in text and (folder / name).is_file()
        },
    }


def _text(path: Path) -> str:
    return text_of(str(path), "The file of variables") if path.is_file() else ""


def tell(answer: dict[str, Any], *, notes: bool) -> None:
    """What is not carried over, always; what means something else here, where it was asked for."""
    if notes:
        _list("Means something else here:", answer.get("notes", []))
    _list("Not carried over:", answer.get("unsupported", []))


def _list(head: str, items: list[dict[str, Any]]) -> None:
    if not items:
        return
    hint(head)
    for item in items:
        value = f" {item['value']}" if item["value"] else ""
        line = f"line {item['line']}: " if item["line"] else ""
        hint(f"  {line}{item['field']}{value}: {item['fix']}")


def show_secrets(made: list[dict[str, Any]]) -> None:
    """The one time that they can be read."""
    if not made:
        return
    say("Made for it, shown only this once:")
    widest = max(len(one["name"]) for one in made)
    for one in made:
        title = f"   {one['title']}" if one["title"] else ""
        say(f"  {one['name']:<{widest}}  {one['value']}{title}")
