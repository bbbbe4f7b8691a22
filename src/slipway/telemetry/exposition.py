"""The numbers in Prometheus' text format."""

from __future__ import annotations

import asyncio
import importlib
import logging
import platform
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from slipway import __version__
from slipway.telemetry.numbers import Collector, Count, Durations, Gauge, Labels, Numbers

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATIENCE = 5.0  # seconds for each collector; Prometheus gives up after 10

log = logging.getLogger(__name__)


async def scrape(numbers: Numbers, collectors: Mapping[str, Collector]) -> bytes:
    """All there is to tell. A collector that can't answer costs its own numbers only, and is named."""
    await asyncio.to_thread(importlib.import_module, "prometheus_client")
    answers = await asyncio.gather(*(_asked(name, collector) for name, collector in collectors.items()))
    up: dict[Labels, float] = {
        (name,): float(answer is not None) for name, answer in zip(collectors, answers, strict=True)
    }
    gauges = [gauge for answer in answers for gauge in answer or ()]
    gauges.append(Gauge("slipway_collector_up", "Whether a source of gauges answered this scrape.", up, ("collector",)))
    return _text(numbers, gauges)


async def _asked(name: str, collector: Collector) -> list[Gauge] | None:
    try:
        async with asyncio.timeout(PATIENCE):
            return list(await collector())
    except (SQLAlchemyError, TimeoutError) as error:
        log.warning("the numbers of %s could not be had: %s", name, type(error).__name__)
        return None


def _text(numbers: Numbers, gauges: Iterable[Gauge]) -> bytes:
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    registry = CollectorRegistry()
    registry.register(_Families(numbers, gauges))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Families:
    """What the library asks of a source."""

    def __init__(self, numbers: Numbers, gauges: Iterable[Gauge]) -> None:
        self._numbers, self._gauges = numbers, gauges

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("slipway_build", "What runs here.", value=build)
        for number in vars(self._numbers).values():
            yield _count(number) if isinstance(number, Count) else _durations(number)
        for gauge in self._gauges:
            family = GaugeMetricFamily(gauge.name, gauge.about, labels=gauge.labels)
            for labels, value in gauge.values.items():
                family.add_metric(labels, value)
            yield family


def _count(count: Count) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(count.name, count.about, labels=count.labels)
    for labels, value in count.values.items():
        family.add_metric(labels, value)
    return family


def _durations(durations: Durations) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(durations.name, durations.about, labels=durations.labels)
    names = [*(repr(bound) for bound in durations.bounds), "+Inf"]
    for labels, places in durations.places.items():
        family.add_metric(labels, list(zip(names, accumulate(places), strict=True)), durations.sums[labels])
    return family
