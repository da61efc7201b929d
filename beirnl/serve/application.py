"""The application on Ray Serve: searchers as replicas, and a deployment for each encoder and reranker.

A request meets one replica of ``Search``, which maps the files of all indexes and does everything but asking
models; a model answers the requests of all replicas in batches, and is scaled by how many wait for it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from beirnl.config import Runtime, load_experiment
from beirnl.pipeline import Pipeline
from beirnl.serve.collections import check_built
from beirnl.serve.http import create_app
from beirnl.serve.models import Model, load
from beirnl.serve.searching import models_of
from beirnl.serve.service import Service
from beirnl.serve.settings import Limits, Settings

_QUEUED = 4  # requests in the replica or on the way to it, for each that is worked on
_PATIENCE = 1.0  # seconds for a model to say that it is there


@serve.deployment
class ModelServer:
    """A model; requests that come close together are answered in one batch."""

    def __init__(self, model: Model, runtime: Runtime, batch: int, wait: float) -> None:
        self._batch = load(model, runtime)
        self.answer.set_max_batch_size(batch)
        self.answer.set_batch_wait_timeout_s(wait)

    @serve.batch  # type: ignore[untyped-decorator]
    async def answer(self, items: list[Any]) -> list[Any]:
        """Answers for what several requests have asked."""
        return await asyncio.to_thread(self._batch, items)

    async def there(self) -> bool:
        """Whether it is loaded."""
        return True


class _ServedModels:
    """Models behind handles; see :class:`beirnl.serve.models.Models`."""

    def __init__(self, handles: Mapping[str, DeploymentHandle]) -> None:
        self._handles = handles

    async def ask(self, model: Model, item: Any) -> Any:
        return await self._handles[model.name].answer.remote(item)

    async def waiting(self, models: Sequence[Model]) -> list[str]:
        async def answers(name: str) -> bool:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return bool(await self._handles[name].there.remote())
            except Exception:  # whatever keeps it from answering
                return False

        names = [model.name for model in models]
        there = await asyncio.gather(*map(answers, names))
        return [name for name, answered in zip(names, there, strict=True) if not answered]


@serve.deployment
@serve.ingress()
class Search:
    """A replica of the service, with its routes."""

    def __init__(self, pipeline: Pipeline, models: dict[str, DeploymentHandle], limits: Limits) -> None:
        self._service, self._limits = Service(pipeline, _ServedModels(models)), limits

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_app(self._service, self._limits)


def build(settings: Settings) -> serve.Application:
    """The application of an experiment, for ``serve run`` and ``beirnl serve``.

    Args:
        settings: the arguments of a config file.

    Raises:
        StoreError: something that is to be served was not made.
    """
    pipeline = Pipeline.of(load_experiment(Path(settings.experiment)))
    check_built(pipeline)
    runtime = pipeline.experiment.runtime
    models = {model.name: _model(model, runtime, settings) for model in models_of(pipeline)}
    search: Any = Search
    return search.options(
        num_replicas=settings.replicas,
        max_ongoing_requests=_QUEUED * settings.concurrency,
        max_queued_requests=_QUEUED * settings.concurrency,
        backpressure_config={"status_code": 503, "retry_after_s": settings.retry_after},
        graceful_shutdown_timeout_s=settings.timeout,
        ray_actor_options={"num_cpus": settings.cpus},
    ).bind(pipeline, models, settings.limits)


def _model(model: Model, runtime: Runtime, settings: Settings) -> serve.Application:
    server: Any = ModelServer
    return server.options(
        name=model.name,
        max_ongoing_requests=2 * settings.batch,
        autoscaling_config={
            "min_replicas": 1,
            "max_replicas": settings.model_replicas,
            "target_ongoing_requests": settings.batch,
        },
        graceful_shutdown_timeout_s=settings.timeout,
        ray_actor_options={"num_cpus": settings.cpus, "num_gpus": runtime.gpus},
    ).bind(model, runtime, settings.batch, settings.batch_wait)
