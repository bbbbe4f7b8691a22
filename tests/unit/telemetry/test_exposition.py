"""Metrics as Prometheus reads them, and what a collector that does not answer costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.exc import OperationalError

from slipway import __version__
from slipway.telemetry.metrics import gauge
from slipway.telemetry.telemetry import Telemetry


async def samples(telemetry: Telemetry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = (await telemetry.scrape()).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


async def test_counts_and_durations() -> None:
    telemetry = Telemetry()
    for seconds in (0.01, 0.011, 4000.0):
        telemetry.metrics.step_seconds.labels("sim.make", "done").observe(seconds)
    telemetry.metrics.retries.labels("sim.make").inc()
    telemetry.metrics.retries.labels("sim.make").inc()
    found = await samples(telemetry)
    assert found[key("slipway_step_retries_total", action="sim.make")] == 2
    labels = {"action": "sim.make", "outcome": "done"}
    assert found[key("slipway_step_seconds_count", **labels)] == 3
    assert found[key("slipway_step_seconds_sum", **labels)] == 4000.021
    at_most = {"0.01": 1, "0.05": 2, "1800.0": 2, "+Inf": 3}  # a bound includes itself
    assert {le: found[key("slipway_step_seconds_bucket", le=le, **labels)] for le in at_most} == at_most


async def test_process_and_build() -> None:
    found = await samples(Telemetry())
    assert found[key("process_resident_memory_bytes")] > 1024**2
    assert found[key("process_cpu_seconds_total")] > 0
    builds = [dict(labels) for name, labels in found if name == "slipway_build_info"]
    assert [build["version"] for build in builds] == [__version__]


async def test_a_source_that_fails_costs_its_own_numbers_only_and_is_named() -> None:
    async def away() -> Iterable[Metric]:
        raise OperationalError("SELECT", {}, Exception("no route to the database"))

    async def there() -> Iterable[Metric]:
        return [gauge("slipway_things", "Things.", {("big",): 2.0}, ("size",))]

    telemetry = Telemetry()
    telemetry.collectors |= {"away": away, "there": there}
    found = await samples(telemetry)
    assert found[key("slipway_things", size="big")] == 2
    assert found[key("slipway_collector_up", collector="there")] == 1
    assert found[key("slipway_collector_up", collector="away")] == 0


async def test_two_scrapes_of_two_telemetries_know_nothing_of_each_other() -> None:
    one, other = Telemetry(), Telemetry()
    one.metrics.retries.labels("only.here").inc()
    assert key("slipway_step_retries_total", action="only.here") in await samples(one)
    assert key("slipway_step_retries_total", action="only.here") not in await samples(other)
    assert await samples(one)


async def test_no_series_says_when_another_was_created() -> None:
    telemetry = Telemetry()
    telemetry.metrics.retries.labels("sim.make").inc()
    assert not [name for name, _ in await samples(telemetry) if name.endswith("_created")]


SLOW = ("opentelemetry", "httpx", "openstack", "keystoneauth1", "requests")


def test_slow_libraries_are_not_imported_before_they_are_needed() -> None:
    asked: Any = "import sys, slipway.app, slipway.api.application; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert "slipway.telemetry.telemetry" in loaded
    assert not {name for name in loaded if name.startswith(SLOW)}
