"""From what was sent to a spec: a template with parameters, or a workload file, and overrides."""

from __future__ import annotations

import asyncio

from podwarden.catalog import Catalogue, Overrides, read_file
from podwarden.domain.workload import Spec
from podwarden.errors import Invalid
from podwarden.web.api.shapes import WorkloadSource


async def spec_of(given: WorkloadSource, catalogue: Catalogue) -> Spec:
    """Invalid names every faulty field. In a thread: reading half a megabyte of YAML takes its time."""
    return await asyncio.to_thread(_spec_of, given, catalogue)


def _spec_of(given: WorkloadSource, catalogue: Catalogue) -> Spec:
    overrides = Overrides(
        name=given.name,
        cluster=given.cluster,
        gpus=given.gpus,
        vram=given.vram,
        sharing=given.sharing,
        model=given.model,
        priority=given.priority,
    )
    if given.template is not None and given.file is None:
        return catalogue.resolve(
            given.template, parameters=dict(given.parameters), overrides=overrides
        )
    if given.file is not None and given.template is None:
        return read_file(
            given.file, given.source, overrides=overrides, parameters=dict(given.parameters)
        )
    raise Invalid.of(
        "template", given.template or "", "either a template's name or the text of a file"
    )
