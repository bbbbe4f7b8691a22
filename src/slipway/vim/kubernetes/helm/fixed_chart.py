"""Charts without templates: what Helm installs is, word for word, what was looked at before.

A template may say something else each time it is rendered (`lookup`, `now`, `randAlphaNum`), and a YAML text something
else to each reader. So objects are written as JSON, of what was read, and whatever was rendered is not rendered again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from slipway.model.errors import VimError, VimFault
from slipway.package.yaml_reader import plain, read_yaml
from slipway.vim.kubernetes.helm.chart import CHART_FILE, KINDS, Chart, Files
from slipway.vim.kubernetes.helm.release_objects import read_manifests
from slipway.vim.kubernetes.manifests import Manifest

DEFINITION = "CustomResourceDefinition"
# Of a chart, and of charts in it: what says which of these are enabled.
_ABOUT = re.compile(r"(charts/[^/]+/)*(Chart\.yaml|values\.yaml|requirements\.yaml|\.helmignore)")
# Other readers of JSON and YAML may take these for the end of a line, refuse them or, of braces, begin an action.
_UNSAFE = re.compile("(?<={){|[\x7f-\uffff]")


def fixed_chart(chart: Chart, manifests: Iterable[Manifest]) -> Files:
    """What makes these objects and hooks, under the chart's name and with its default values."""
    about = plain(read_yaml(chart.files[CHART_FILE], CHART_FILE).root)
    about.pop("dependencies", None)
    kept = {name: chart.files[name] for name in ("values.yaml",) if name in chart.files}
    return {**kept, CHART_FILE: json.dumps(about).encode(), "templates/all.yaml": as_template(manifests)}


def kinds_alone(chart: Chart) -> Files:
    """What makes the definitions of `crds/`, and nothing else. VimError names what is none."""
    files = {path: content for path, content in chart.files.items() if _ABOUT.fullmatch(path)}
    definitions: dict[str, list[Manifest]] = {}
    for one in read_manifests((path, chart.files[path]) for path in filter(KINDS.fullmatch, chart.files)):
        if one.kind != DEFINITION:
            raise VimError(
                f"{one.file} of the chart has {one}, and only definitions of kinds ({DEFINITION}) may be in crds/.",
                VimFault.PERMANENT,
                cure="move it to the chart's templates.",
            )
        definitions.setdefault(one.file, []).append(one)
    return files | {path: as_template(some) for path, some in definitions.items()}


def as_template(manifests: Iterable[Manifest]) -> bytes:
    """JSON, which all readers of YAML read alike."""
    texts = (json.dumps(one.content, ensure_ascii=False, indent=1) for one in manifests)
    safe = (_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) for text in texts)
    return "".join(f"---\n{text}\n" for text in safe).encode()
