"""What additionalParams say about charts: which ones, their values, and where the number of each VDU is set.

helm_chart_path: Files/charts/web                     a chart of the package: an archive, or the directory of its files
helm_parameters: {service.port: 8080}                 values
helm_value_names: {VDU1: {replica: replicaCount}}     the value that is the number of a VDU
namespace: prod

or, for several charts and for charts of repositories:

use_helm: true
using_helm_install_param:
- {exthelmchart: false, helmreleasename: web, helmchartfile_path: Files/charts/web, helmparameter: [service.port=8080]}
- {exthelmchart: true, helmreleasename: db, helmchartname: postgres, helmchartversion: 1.2.0,
   exthelmrepo_url: https://charts.example.com, repository_ca, repository_username, repository_password}
helm_replica_values: {aspect: replicaCount}
vdu_mapping: {VDU1: {kind: Deployment, name: web-front, helmreleasename: web}}
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.package import is_url
from slipway.model.secrets import is_reference
from slipway.model.target import CONFIGURATION_PATHS, Change, VnfTarget
from slipway.vim.kubernetes.cnf_parameters import FILES, FORCE, MAPPING, NAMESPACE, namespace_of
from slipway.vim.kubernetes.helm.values import merged_values, read_pairs, value_path

CHART, VALUES, VALUE_NAMES = "helm_chart_path", "helm_parameters", "helm_value_names"
USE, CHARTS, ASPECT_VALUES = "use_helm", "using_helm_install_param", "helm_replica_values"
OF_HELM = (CHART, VALUES, VALUE_NAMES, USE, CHARTS, ASPECT_VALUES)
LASTING = (*OF_HELM, NAMESPACE, MAPPING)
REPLICAS = "slipway.io/replicas."  # begins an annotation of a chart: which value is the number of a VDU
ONLY = "vnf"  # what the release of a single chart is called when nobody says it
MOST_CHARTS = 20
OF_A_CHART = {
    False: ("exthelmchart", "helmreleasename", "helmparameter", "helmchartfile_path", VALUES),
    True: ("exthelmchart", "helmreleasename", "helmparameter", "helmchartname", "helmchartversion",
           "helmrepositoryname", "exthelmrepo_url", "repository_ca", "repository_username", "repository_password",
           VALUES),
}  # fmt: skip
OF_A_MAPPING = ("kind", "name", "helmreleasename")
_RELEASE = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_CHART_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_VERSION = re.compile(r"v?[0-9][0-9A-Za-z.+-]{0,99}")


@dataclass(frozen=True)
class Repository:
    """Where a chart is fetched from. `password` is a reference to a secret where Slipway keeps it."""

    url: str
    chart: str
    version: str
    ca: str | None = None
    username: str | None = None
    password: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class WantedChart:
    """`key`: what the request calls the release. `path`: in the package; else it is in `repository`."""

    key: str
    path: str | None = None
    repository: Repository | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VduOfChart:
    """Which object of a release a VDU is, and which value has its number (None: the request does not say it)."""

    release: str
    name: str
    kind: str | None = None
    replicas: tuple[str, ...] | None = None


@dataclass(frozen=True)
class HelmParameters:
    charts: tuple[WantedChart, ...]
    vdus: Mapping[str, VduOfChart]
    namespace: str | None = None


def uses_helm(target: VnfTarget | None) -> bool:
    if target is None:
        return False
    given = target.parameters
    return any(given.get(name) is not None for name in OF_HELM) or bool(FILES not in given and target.flavour.charts)


def helm_parameters(target: VnfTarget) -> HelmParameters:
    """BadRequest or Unprocessable names the parameter and the cure."""
    given = target.parameters
    if given.get(FILES) is not None:
        raise Unprocessable(
            f"additionalParams.{FILES}: the request also names charts, and a VNF is made of manifests or of charts; "
            "leave one of them out, or put the manifests into a chart."
        )
    charts = _charts(target)
    keys = [one.key for one in charts]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise BadRequest(f"additionalParams.{CHARTS}: two releases are called {twice!r}; give each its own name.")
    return HelmParameters(charts, _vdus(target, keys), namespace_of(given.get(NAMESPACE)))


def refuse_charts(change: Change) -> None:
    """For what can be known to be wrong before any file is read."""
    after = change.after
    if after is None:
        return
    parameters = helm_parameters(after)
    if change.configuration_files:
        raise Unprocessable(
            f"metadata.{CONFIGURATION_PATHS}: the VNF is made of charts, whose ConfigMaps and Secrets only an upgrade "
            "of the release changes; change the package of the VNF (change_vnfpkg)."
        )
    if not isinstance(change.additional_params.get(FORCE, False), bool):
        raise BadRequest(f"additionalParams.{FORCE}: it must be true or false.")
    if change.before is not None:
        if not uses_helm(change.before):
            raise Unprocessable(
                "The VNF is made of manifests, and the request names charts; terminate it, and instantiate it from the "
                "package with charts."
            )
        if helm_parameters(change.before).namespace != parameters.namespace:
            raise Unprocessable(
                f"additionalParams.{NAMESPACE}: the releases of the VNF are in another namespace and can't move; leave "
                "it out, or terminate the VNF and instantiate it there."
            )
        asked = change.additional_params
        if wrong := [name for name in LASTING if name in asked and asked[name] != after.parameters.get(name)]:
            raise Unprocessable(
                f"additionalParams.{wrong[0]}: it is read at the instantiation and when the package changes; leave it "
                "out."
            )
    external = {chart.key for chart in parameters.charts if chart.repository}
    for vdu, where in parameters.vdus.items():
        if where.release in external:
            check_scaled(after, vdu, where.replicas)
    for chart in parameters.charts:
        if chart.path and after.file_names and not _is_there(chart.path, after.file_names):
            raise Unprocessable(
                f"additionalParams: the package has no chart {chart.path!r}: neither an archive of that name nor a "
                f"directory with a Chart.yaml; correct the path."
            )


def refuse_leaving_charts(change: Change) -> None:
    """Of a change to a package without charts."""
    if uses_helm(change.before):
        raise Unprocessable(
            "The VNF is made of charts, and the package brings manifests; terminate it, and instantiate it from the "
            "package with manifests."
        )


def _is_there(path: str, names: frozenset[str]) -> bool:
    return path in names or f"{path}/Chart.yaml" in names


def _charts(target: VnfTarget) -> tuple[WantedChart, ...]:
    given = target.parameters
    if not _flag(given.get(USE), f"additionalParams.{USE}", missing=True):
        raise BadRequest(f"additionalParams.{USE}: it says no, and charts are named; leave it out, or the charts.")
    if given.get(CHARTS) is not None:
        if given.get(CHART) is not None:
            raise BadRequest(f"additionalParams.{CHART}: {CHARTS} names charts as well; keep one of the two.")
        if given.get(VALUES) is not None:
            raise BadRequest(f"additionalParams.{VALUES}: give it in the entry of {CHARTS} that it is for.")
        return _listed(given[CHARTS])
    values = _object(given.get(VALUES), f"additionalParams.{VALUES}")
    if given.get(CHART) is not None:
        path = _path(given[CHART], f"additionalParams.{CHART}")
        return (WantedChart(ONLY, path, values=_values(values, [], f"additionalParams.{VALUES}")),)
    paths = target.flavour.charts
    if not paths:
        named = next(name for name in OF_HELM if given.get(name) is not None)
        raise Unprocessable(
            f"additionalParams.{named}: no chart is named; name one in {CHART}, in {CHARTS}, or as an artifact of a "
            "Mciop node in the VNFD."
        )
    if len(paths) == 1:
        return (WantedChart(ONLY, paths[0], values=_values(values, [], f"additionalParams.{VALUES}")),)
    if values:
        raise BadRequest(f"additionalParams.{VALUES}: the VNFD has {len(paths)} charts; name them in {CHARTS}.")
    return tuple(WantedChart(_key_of(path), path) for path in paths)


def _key_of(path: str) -> str:
    """A name for the release of a chart that the VNFD names."""
    stem = re.sub(r"(-v?[0-9][^/]*)?\.(tgz|tar\.gz)$", "", posixpath.basename(path)).lower()
    return re.sub(r"[^a-z0-9-]+", "-", stem).strip("-")[:40].rstrip("-") or ONLY


def _listed(given: Any) -> tuple[WantedChart, ...]:
    place = f"additionalParams.{CHARTS}"
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, dict) for one in given):
        raise BadRequest(f"{place}: it must be a list of objects, one for each chart.")
    if len(given) > MOST_CHARTS:
        raise BadRequest(f"{place}: there are {len(given)} charts; at most {MOST_CHARTS} can be one VNF.")
    return tuple(_chart(one, f"{place}[{at}]") for at, one in enumerate(given))


def _chart(given: Mapping[str, Any], place: str) -> WantedChart:
    external = _flag(given.get("exthelmchart"), f"{place}.exthelmchart", missing=False)
    for name in given:
        if name not in OF_A_CHART[external]:
            whose = "of a repository" if external else "of the package"
            raise BadRequest(
                f"{place}.{name}: a chart {whose} has no such field; it has: {', '.join(OF_A_CHART[external])}."
            )
    key = given.get("helmreleasename")
    if not isinstance(key, str) or not _RELEASE.fullmatch(key):
        raise BadRequest(
            f"{place}.helmreleasename: it must be a name of up to 40 lower-case letters, digits and hyphens."
        )
    pairs = read_pairs(given.get("helmparameter") or [], f"{place}.helmparameter")
    values = _values(_object(given.get(VALUES), f"{place}.{VALUES}"), pairs, f"{place}.{VALUES}")
    if external:
        return WantedChart(key, repository=_repository(given, place), values=values)
    return WantedChart(key, _path(given.get("helmchartfile_path"), f"{place}.helmchartfile_path"), values=values)


def _repository(given: Mapping[str, Any], place: str) -> Repository:
    url, chart, version = (given.get(name) for name in ("exthelmrepo_url", "helmchartname", "helmchartversion"))
    if not isinstance(url, str) or not is_url(url) or not url.startswith(("https://", "http://")):
        raise BadRequest(f"{place}.exthelmrepo_url: it must be the http(s) URL of a chart repository.")
    if "?" in url or "#" in url:
        raise BadRequest(
            f"{place}.exthelmrepo_url: it has a query or a fragment, which the URL of its index can't have; leave it "
            "out, and give who logs in as repository_username and repository_password."
        )
    chart = chart.rpartition("/")[2] if isinstance(chart, str) else ""
    if not _CHART_NAME.fullmatch(chart):
        raise BadRequest(f"{place}.helmchartname: it must be the name of a chart in the repository.")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise BadRequest(
            f"{place}.helmchartversion: say which version of the chart: the newest may be another one at each retry "
            "and scale."
        )
    ca, user, password = (given.get(f"repository_{name}") for name in ("ca", "username", "password"))
    for name, text in (("ca", ca), ("username", user)):
        if text is not None and not (isinstance(text, str) and text):
            raise BadRequest(f"{place}.repository_{name}: it must be a string.")
    if password is not None and not (is_reference(password) or (isinstance(password, str) and password)):
        raise BadRequest(f"{place}.repository_password: it must be a string.")
    if (user is None) != (password is None) or ":" in (user or ""):
        raise BadRequest(
            f"{place}.repository_username, repository_password: one goes with the other, and no user has a colon."
        )
    return Repository(url.rstrip("/"), chart, version, ca, user, password)


def _vdus(target: VnfTarget, releases: list[str]) -> dict[str, VduOfChart]:
    mapping = _object(target.parameters.get(MAPPING), f"additionalParams.{MAPPING}")
    for vdu in mapping:
        if vdu not in target.flavour.vdus:
            known = ", ".join(target.flavour.vdus)
            raise BadRequest(f"additionalParams.{MAPPING}.{vdu}: the flavour has no such VDU; it has: {known}.")
    numbers = _value_names(target)
    return {
        vdu.name: _vdu(vdu.name, vdu.title or vdu.name, mapping.get(vdu.name), releases, numbers.get(vdu.name))
        for vdu in target.flavour.vdus.values()
    }


def _vdu(vdu: str, title: str, mapped: Any, releases: list[str], number: tuple[str, ...] | None) -> VduOfChart:
    place = f"additionalParams.{MAPPING}.{vdu}"
    mapped = {} if mapped is None else mapped
    if not isinstance(mapped, dict) or not all(isinstance(one, str) and one for one in mapped.values()):
        raise BadRequest(f"{place}: it must be an object with strings: {', '.join(OF_A_MAPPING)}.")
    if unknown := [key for key in mapped if key not in OF_A_MAPPING]:
        raise BadRequest(f"{place}.{unknown[0]}: nothing is done about it; leave it out.")
    release = mapped.get("helmreleasename") or (releases[0] if len(releases) == 1 else "")
    if release not in releases:
        raise Unprocessable(
            f"{place}.helmreleasename: say which release VDU {vdu} is in; there are: {', '.join(releases)}."
        )
    return VduOfChart(release, mapped.get("name") or title, mapped.get("kind"), number)


def _value_names(target: VnfTarget) -> dict[str, tuple[str, ...]]:
    """By VDU: where its number is set."""
    found: dict[str, tuple[str, ...]] = {}
    aspects, vdus = target.flavour.aspects, target.flavour.vdus
    for aspect, path in _object(target.parameters.get(ASPECT_VALUES), f"additionalParams.{ASPECT_VALUES}").items():
        place = f"additionalParams.{ASPECT_VALUES}.{aspect}"
        if aspect not in aspects:
            known = ", ".join(aspects) or "none"
            raise BadRequest(f"{place}: the flavour has no such aspect; it has: {known}.")
        if len(aspects[aspect].deltas) > 1:
            names = ", ".join(aspects[aspect].deltas)
            raise BadRequest(f"{place}: the aspect scales {names}; give the value of each in {VALUE_NAMES}.")
        found |= dict.fromkeys(aspects[aspect].deltas, value_path(path, place))
    for vdu, names in _object(target.parameters.get(VALUE_NAMES), f"additionalParams.{VALUE_NAMES}").items():
        place = f"additionalParams.{VALUE_NAMES}.{vdu}"
        if vdu not in vdus:
            raise BadRequest(f"{place}: the flavour has no such VDU; it has: {', '.join(vdus)}.")
        if not isinstance(names, dict) or set(names) != {"replica"}:
            raise BadRequest(f"{place}: it must be an object with replica: the path of the value with its number.")
        found[vdu] = value_path(names["replica"], f"{place}.replica")
    return found


def check_scaled(target: VnfTarget, vdu: str, replicas: tuple[str, ...] | None) -> None:
    """Every VDU that an aspect scales needs a value for its number."""
    if replicas is None and any(vdu in aspect.deltas for aspect in target.flavour.aspects.values()):
        raise Unprocessable(
            f"additionalParams.{VALUE_NAMES}.{vdu}: the VNFD has a scaling aspect for the VDU; say which value of the "
            f"chart is its number, such as {{{vdu}: {{replica: replicaCount}}}}, or say it in the Chart.yaml: "
            f"annotations: {{{REPLICAS}{vdu}: replicaCount}}."
        )


def _values(given: Mapping[str, Any], pairs: list[tuple[str, str, Any]], place: str) -> dict[str, Any]:
    return merged_values([*((f"{place}.{path}", path, value) for path, value in given.items()), *pairs])


def _path(given: Any, place: str) -> str:
    if not isinstance(given, str) or not given or is_url(given):
        raise BadRequest(f"{place}: it must be the path of a chart in the package.")
    path = posixpath.normpath(given).lstrip("/")
    if path.startswith("..") or any(character in path for character in "*?["):
        raise BadRequest(f"{place}: it must be the path of a chart in the package.")
    return path


def _object(given: Any, place: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadRequest(f"{place}: it must be an object.")
    return given


def _flag(given: Any, place: str, *, missing: bool) -> bool:
    """Also as a text, as other managers have it."""
    words = {None: missing, True: True, False: False, "true": True, "false": False}
    key = given.lower() if isinstance(given, str) else given
    if not isinstance(key, str | bool | None) or key not in words:
        raise BadRequest(f"{place}: it must be true or false.")
    return words[key]
