"""The names of all cluster parameters: what the pages and the examples are compared with."""

from __future__ import annotations

from collections.abc import Iterator

from slipway.cluster.schema import ListOf, Nested, Parameters, readers


def parameter_names(kind: type[Parameters], before: str = "") -> Iterator[str]:
    """All that may be written, as `master_node.pod_cidr`; members of lists as `files[].sha256`."""
    for name, how in readers(kind).items():
        yield before + name
        if isinstance(how, Nested):
            yield from parameter_names(how.kind, f"{before}{name}.")
        elif isinstance(how, ListOf):
            yield from parameter_names(how.kind, f"{before}{name}[].")
