"""Answers to deploying as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from podwarden.catalog import ComposePlan, Template
from podwarden.control.answers import Chance, Fit, Made, Submitted
from podwarden.domain.document import to_document
from podwarden.domain.inventory import Device
from podwarden.domain.workload import Spec
from podwarden.errors import Problem
from podwarden.web.api import shapes, shapes_deploy, views


def made_secrets(made: Sequence[Made]) -> list[shapes_deploy.MadeSecret]:
    return [
        shapes_deploy.MadeSecret(
            name=one.name, parameter=one.parameter, title=one.title, value=one.value
        )
        for one in made
    ]


def deployed(spec: Spec, done: Submitted, known: Mapping[str, Device]) -> shapes_deploy.Deployed:
    return shapes_deploy.Deployed(
        workload=views.workload(done.workload, done.verdict, known) if done.workload else None,
        preview=views.preview(spec, done, known),
        made_secrets=made_secrets(done.made),
    )


def compose(
    plan: ComposePlan, answers: Sequence[Submitted], known: Mapping[str, Device]
) -> shapes_deploy.ComposeDeployed:
    return shapes_deploy.ComposeDeployed(
        services=[
            deployed(spec, done, known) for spec, done in zip(plan.specs, answers, strict=True)
        ],
        notes=[_item(problem) for problem in plan.notes],
        unsupported=[_item(problem) for problem in plan.unsupported],
    )


def fit(
    template: Template, spec: Spec, noun: Fit, known: Mapping[str, Device]
) -> shapes_deploy.FitShape:
    return shapes_deploy.FitShape(
        template=template.name,
        title=template.title,
        cluster=noun.cluster,
        gpu=to_document(spec).get("gpu"),
        verdict=verdict(noun),
        now=_chance(noun.now, known),
        empty=_chance(noun.empty, known),
        asks_first=list(template.asks_first),
    )


def verdict(noun: Fit) -> Literal["now", "later", "never"]:
    if noun.never:
        return "never"
    return "now" if noun.now.placement is not None else "later"


def _chance(noun: Chance, known: Mapping[str, Device]) -> shapes_deploy.Chance:
    return shapes_deploy.Chance(
        fits=noun.placement is not None,
        placement=views.placement(noun.placement, known) if noun.placement else None,
        reason=views.reason(noun.reason) if noun.reason else None,
    )


def _item(problem: Problem) -> shapes.ProblemItem:
    return shapes.ProblemItem(
        field=problem.field, value=problem.value, fix=problem.fix, line=problem.line
    )
