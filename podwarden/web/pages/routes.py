"""The addresses of all pages, in the order in which they are tried."""

from __future__ import annotations

from fastapi import APIRouter

from podwarden.web.pages import (
    account,
    actions,
    catalogue,
    clusters,
    deploy,
    gpus,
    login,
    patterns,
    queue,
    start,
    stored,
    update,
    workload,
    workloads,
)

ROUTERS: tuple[APIRouter, ...] = (
    login.router,
    gpus.router,
    queue.router,
    workloads.router,
    workload.router,
    update.router,
    actions.router,  # after those: it takes every word behind a workload
    catalogue.router,
    deploy.router,
    account.router,
    clusters.router,
    start.router,
    stored.router,
    patterns.router,
)
