"""How long reading and checking a package takes: the sample cluster, median of 20."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from slipway.package.build import build_package
from slipway.package.reader import read_package

SAMPLE = Path(__file__).parent.parent / "samples" / "cluster-simulated"
PEER_MS = 2000.0
RUNS = 20


def measure(sample: Path = SAMPLE, runs: int = RUNS) -> tuple[float, float]:
    """(wall, CPU) milliseconds of `read_package`."""
    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "sample.csar"
        build_package(sample, target)
        for _ in range(runs):
            wall, cpu = time.perf_counter(), time.process_time()
            read_package(target)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
    return statistics.median(walls) * 1000, statistics.median(cpus) * 1000


def main() -> None:
    wall, cpu = measure()
    print(f"onboarding: wall {wall:.1f} ms, cpu {cpu:.1f} ms (peer {PEER_MS:.0f} ms, ratio {PEER_MS / wall:.0f})")


if __name__ == "__main__":
    main()
