"""How long reading and checking a package takes: the sample cluster, median of 20."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from slipway.package.build import build_package
from slipway.package.reader import read_package

SAMPLE = Path(__file__).parent.parent / "samples" / "cluster-simulated"
RUNS = 20


def measure(sample: Path = SAMPLE, runs: int = RUNS) -> tuple[float, float]:
    """(wall, CPU) seconds of `read_package`."""
    limits, cpus = [], []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "sample.csar"
        build_package(sample, target)
        for _ in range(runs):
            wall, cpu = time.perf_counter(), time.process_time()
            read_package(target)
            limits.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
    return statistics.median(limits), statistics.median(cpus)
