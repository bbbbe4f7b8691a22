"""One VNF on one page, what is wrong first: a person who is called at night reads the first lines only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote
from typing import TYPE_CHECKING, Any

from slipway.cli.output import clean, short_time, text
from slipway.cli.progress import cures

if TYPE_CHECKING:
    from rich.console import RenderableType

RECENT = 5
CURED_BY_HEAL = ("has no power", "does not answer", "does not answer by SSH", "is not ready")
ONGOING = frozenset({"STARTING", "PROCESSING", "ROLLING_BACK"})
Document = dict[str, Any]


def problems(
    vnf: Document, operations: list[Document], cluster: Document | None = None, drift: Iterable[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Each with what can be done about it."""
    for problem in drift:
        yield problem, []
    for problem in (cluster or {}).get("problems", ()):
        yield problem, _heal_of_node(vnf, cluster or {}, problem)
    for operation in operations:
        if operation["operationState"] == "FAILED_TEMP":
            detail = (operation.get("error") or {}).get("detail") or "the server does not say why."
            yield f"{operation['operation']} is in FAILED_TEMP: {detail}", cures(operation["id"])
    info = vnf.get("instantiatedVnfInfo") or {}
    present = {vnfc["id"] for vnfc in info.get("vnfcResourceInfo") or ()}
    name = quote(vnf.get("vnfInstanceName") or vnf["id"])
    for vnfc in info.get("vnfcInfo") or ():
        cure = [f"slipway vnf heal {name} --vnfc {quote(vnfc['id'])}"]
        if vnfc.get("vnfcResourceInfoId") not in present:
            yield f"VNFC {vnfc['id']} is missing: it has no machine.", cure
        elif vnfc.get("vnfcState", "STARTED") != "STARTED":
            yield f"VNFC {vnfc['id']} is {vnfc['vnfcState']}.", cure


def _heal_of_node(vnf: Document, cluster: Document, problem: str) -> list[str]:
    """What helps a node that is silent or not ready. Others need a look first."""
    info = vnf.get("instantiatedVnfInfo") or {}
    ids = {one.get("vnfcResourceInfoId"): one["id"] for one in info.get("vnfcInfo") or ()}
    named = {(one.get("metadata") or {}).get("name"): ids.get(one["id"]) for one in info.get("vnfcResourceInfo") or ()}
    for node in cluster.get("nodes", ()):
        if problem in {f"{node['name']} {state}." for state in CURED_BY_HEAL} and named.get(node["name"]):
            vnf_name = quote(vnf.get("vnfInstanceName") or vnf["id"])
            return [f"slipway vnf heal {vnf_name} --vnfc {quote(str(named[node['name']]))}"]
    return []


def view(
    vnf: Document,
    operations: list[Document],
    cluster: Document | None = None,
    *,
    asking: bool = False,
    drift: Iterable[str] = (),
) -> RenderableType:
    """`operations` newest first; `cluster` where the VNF is one. `asking`: its answer is not there yet.

    `drift`: what others have done to it on its VIM.
    """
    from rich.tree import Tree

    tree = Tree(text(f"{vnf.get('vnfInstanceName') or '(no name)'}  {vnf['id']}", "bold"), guide_style="dim")
    found = list(problems(vnf, operations, cluster, drift))
    if found:
        branch = tree.add(text("Problems", "bold red"))
        for what, ways_out in found:
            leaf = branch.add(text(what, "red"))
            for cure in ways_out:
                leaf.add(text(cure))
    for operation in operations:
        if operation["operationState"] in ONGOING:
            look = f"slipway op wait {quote(operation['id'])}"
            tree.add(text(f"Under way: {operation['operation']} {operation['operationState']}  {look}", "cyan"))
    _add_facts(tree, vnf)
    if cluster:
        _add_cluster(tree, cluster)
    elif asking:
        tree.add(text("Kubernetes: asking the nodes ...", "dim"))
    _add_vnfcs(tree, vnf.get("instantiatedVnfInfo") or {})
    _add_operations(tree, operations[:RECENT])
    return tree


def _add_facts(tree: Any, vnf: Document) -> None:
    info = vnf.get("instantiatedVnfInfo") or {}
    product = (vnf.get("vnfProvider"), vnf.get("vnfProductName"), vnf.get("vnfSoftwareVersion"))
    tree.add(text(f"Product: {' '.join(clean(part) for part in product)} (VNFD {vnf.get('vnfdId')})"))
    state = vnf.get("instantiationState")
    tree.add(text(f"State: {state}" + (f", {info['vnfState']}" if info.get("vnfState") else "")))
    if info:
        tree.add(text(f"Flavour: {info.get('flavourId')}"))
    top = {scale["aspectId"]: scale["scaleLevel"] for scale in info.get("maxScaleLevels") or ()}
    for scale in info.get("scaleStatus") or ():
        of = f" of {top[scale['aspectId']]}" if scale["aspectId"] in top else ""
        tree.add(text(f"Scale: {scale['aspectId']} at level {scale['scaleLevel']}{of}"))
    for key, vim in (vnf.get("vimConnectionInfo") or {}).items():
        tree.add(text(f"VIM: {key} {vim.get('vimId') or ''} ({vim.get('vimType') or 'registered'})"))
    for one in (info.get("metadata") or {}).get("objects") or ():
        if one.get("kind") == "HelmRelease" and not one.get("api_version"):  # Flux has objects of that kind
            tree.add(text(f"Helm release: {one.get('namespace')}/{one['name']}, revision {one.get('fields')}"))
    if vnf.get("vnfInstanceDescription"):
        tree.add(text(f"Description: {vnf['vnfInstanceDescription']}"))


def _add_cluster(tree: Any, cluster: Document) -> None:
    branch = tree.add(text(f"Kubernetes {cluster.get('version') or '(does not answer)'}", "bold"))
    if cluster.get("virtualAddress"):
        answers = "answers" if cluster.get("virtualAddressAnswers") else "does not answer"
        branch.add(text(f"virtual address {cluster['virtualAddress']} {answers}"))
    for node in cluster["nodes"]:
        ready = {True: "Ready", False: "NotReady", None: "unknown"}[node.get("ready")]
        if node.get("answers") is False:
            ready = "silent"
        if node.get("hasPower") is False:
            ready = "without power"
        words = [f"{node['name']}  {node['role']}  {ready}", node.get("version"), node.get("address")]
        if "etcd" in node:
            words.append("etcd answers" if node["etcd"] else "etcd silent")
        if node.get("certificatesEnd"):
            words.append(f"certificates until {node['certificatesEnd'][:10]}")
        if node.get("cordoned"):
            words.append("cordoned")
        branch.add(text("  ".join(word for word in words if word), "green" if ready == "Ready" else "red"))


def _add_vnfcs(tree: Any, info: Document) -> None:
    by_vdu: dict[str, list[Document]] = {}
    for vnfc in info.get("vnfcResourceInfo") or ():
        by_vdu.setdefault(vnfc["vduId"], []).append(vnfc)
    storages = {one["id"]: one for one in info.get("virtualStorageResourceInfo") or ()}
    ids = {one.get("vnfcResourceInfoId"): one["id"] for one in info.get("vnfcInfo") or ()}
    for vdu, vnfcs in by_vdu.items():
        branch = tree.add(text(f"{vdu}: {len(vnfcs)}", "bold"))
        for vnfc in vnfcs:
            name = (vnfc.get("metadata") or {}).get("name") or vnfc["id"]
            paths = "  ".join(addresses(vnfc))
            leaf = branch.add(text(f"{name}  {paths}"))
            leaf.add(text(f"VNFC {ids.get(vnfc['id'], vnfc['id'])}", "dim"))
            for storage_id in vnfc.get("storageResourceIds") or ():
                storage = storages.get(storage_id) or {}
                leaf.add(text(f"storage {storage.get('virtualStorageDescId') or ''} {storage_id}", "dim"))


def addresses(vnfc: Document) -> list[str]:
    """Floating IPs first: who has them is reached by them."""
    points = vnfc.get("vnfcCpInfo") or ()
    floating = [ip for cp in points for ip in ((cp.get("metadata") or {}).get("floating") or {}).values()]
    return floating + [
        address
        for cp in points
        for protocol in cp.get("cpProtocolInfo") or ()
        for ip in (protocol.get("ipOverEthernet") or {}).get("ipAddresses") or ()
        for address in ip.get("addresses") or ()
    ]


def _add_operations(tree: Any, operations: list[Document]) -> None:
    if not operations:
        return
    branch = tree.add(text("Last operations", "bold"))
    for operation in operations:
        when = short_time(operation.get("startTime"))
        branch.add(text(f"{when}  {operation['operation']}  {operation['operationState']}  {operation['id']}"))
