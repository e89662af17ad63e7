"""The JSON of deploying: what it answers, Compose files, and what this hardware can run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from podwarden.web.api.shapes import (
    MAX_FILE,
    Given,
    Line,
    PlacementShape,
    Preview,
    ProblemItem,
    ReasonShape,
    Shape,
    Word,
    WorkloadShape,
)


class MadeSecret(Shape):
    """A secret that was made for the workload; `value` is shown this once and never again."""

    name: str
    parameter: str
    title: str
    value: str


class Deployed(Shape):
    workload: WorkloadShape | None
    preview: Preview
    made_secrets: list[MadeSecret] = Field(default_factory=list)


class Changed(Shape):
    """how: surge | recreate | replace | nothing; text says what that means."""

    workload: WorkloadShape
    how: str
    text: str
    made_secrets: list[MadeSecret] = Field(default_factory=list)


class ComposeText(Given):
    text: Annotated[str, Field(max_length=MAX_FILE)]
    source: Word = Field(default="docker-compose.yml", description="how messages name the file")


class ComposeOrder(ComposeText):
    """dotenv: the text of the file `.env` beside it. env_files: path as the file has it -> text.

    storages: source of a volume as the file has it -> STORAGE or STORAGE:FOLDER.
    """

    dotenv: Annotated[str, Field(max_length=MAX_FILE)] = ""
    env_files: dict[Line, Annotated[str, Field(max_length=MAX_FILE)]] = Field(
        default_factory=dict, max_length=200
    )
    storages: dict[Line, Line] = Field(default_factory=dict, max_length=200)
    name: Word = ""
    cluster: Word = ""
    gpus: Word = ""
    vram: Word = ""
    sharing: Literal["", "shared", "dedicated"] = ""
    model: Line = ""
    priority: Word = ""
    dry_run: bool = False


class ComposeDeployed(Shape):
    """services: one workload each, those first that others depend on. notes: what means something else here;
    unsupported: what is not carried over. Each with its line; `field` is the place in the file.
    """

    services: list[Deployed]
    notes: list[ProblemItem]
    unsupported: list[ProblemItem]


class Chance(Shape):
    """fits: it would start; placement says where. Else reason."""

    fits: bool
    placement: PlacementShape | None
    reason: ReasonShape | None


class FitShape(Shape):
    """verdict: now | later (it fits, and waits for room) | never. asks_first: parameters that must be given;
    the verdict is with sample values for them.
    """

    template: str
    title: str
    cluster: str
    gpu: dict[str, str | int | list[str]] | None
    verdict: Literal["now", "later", "never"]
    now: Chance
    empty: Chance
    asks_first: list[str]
