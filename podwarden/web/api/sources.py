"""From what was sent to specs: a template with parameters, a workload file or a Compose file, and overrides."""

from __future__ import annotations

import asyncio

from podwarden.catalog import (
    Catalogue,
    ComposePlan,
    Overrides,
    read_compose,
    read_dotenv,
    read_file,
)
from podwarden.control.made import Offer
from podwarden.errors import Invalid
from podwarden.web.api.shapes import WorkloadSource
from podwarden.web.api.shapes_deploy import ComposeOrder


async def offer_of(given: WorkloadSource, catalogue: Catalogue) -> Offer:
    """Invalid names every faulty field. In a thread: reading half a megabyte of YAML takes its time."""
    return await asyncio.to_thread(_offer_of, given, catalogue)


async def compose_of(given: ComposeOrder) -> ComposePlan:
    """Invalid names every fault with its line; Refused COMPOSE_TOO_LARGE."""
    return await asyncio.to_thread(_compose_of, given)


def overrides_of(given: WorkloadSource | ComposeOrder) -> Overrides:
    return Overrides(
        name=given.name,
        cluster=given.cluster,
        gpus=given.gpus,
        vram=given.vram,
        sharing=given.sharing,
        model=given.model,
        priority=given.priority,
    )


def _compose_of(given: ComposeOrder) -> ComposePlan:
    return read_compose(
        given.text,
        given.source,
        variables=read_dotenv(given.dotenv),
        env_files=given.env_files,
        storages=given.storages,
        overrides=overrides_of(given),
    )


def _offer_of(given: WorkloadSource, catalogue: Catalogue) -> Offer:
    parameters, overrides = dict(given.parameters), overrides_of(given)
    if given.template is not None and given.file is None:
        spec = catalogue.resolve(given.template, parameters=parameters, overrides=overrides)
        made = catalogue.generated(given.template, parameters=parameters, overrides=overrides)
        return Offer(spec, made)
    if given.file is not None and given.template is None:
        spec = read_file(given.file, given.source, parameters=parameters, overrides=overrides)
        return Offer(spec)
    raise Invalid.of(
        "template", given.template or "", "either a template's name or the text of a file"
    )
