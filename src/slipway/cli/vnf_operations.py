"""`slipway vnf instantiate|scale|heal|...`: from options to the standard's request, then to start_operation.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli.assignments import FILE_HINT, assignments, read_mapping, string_assignments
from slipway.cli.lookup import find_vnf
from slipway.cli.paths import INSTANCES, item_path
from slipway.cli.session import Session, command
from slipway.cli.start_operation import Name, Params, Plan, Wait, follow_operation, start_operation, vnfc_ids
from slipway.cli.vnf import app, vnfd_of

ParamsFile = Annotated[
    Path | None,
    typer.Option("--params", metavar="FILE", help=f"Additional parameters in YAML or JSON; {FILE_HINT}."),
]
WholeRequest = Annotated[
    Path | None,
    typer.Option("--request", metavar="FILE", help=f"The standard's whole request in YAML or JSON; {FILE_HINT}."),
]


@command(app, "instantiate", example="slipway vnf instantiate mycluster --flavour simple --vim lab --plan")
def instantiate(
    session: Session,
    name: Name,
    flavour: Annotated[str | None, typer.Option(help="The deployment flavour.")] = None,
    level: Annotated[str | None, typer.Option(help="The instantiation level; or the flavour's default.")] = None,
    vim: Annotated[str | None, typer.Option(help="A registered VIM, by name or id; or the default one.")] = None,
    param: Params = None,
    params: ParamsFile = None,
    request: WholeRequest = None,
    plan: Plan = False,
    wait: Wait = True,
) -> int:
    """Bring a VNF to life. What options say goes before what --request says."""
    body = read_mapping(request, "--request") if request else {}
    if flavour:
        body["flavourId"] = flavour
    if "flavourId" not in body:
        raise typer.BadParameter("a flavour is needed, here or in --request.", param_hint="--flavour")
    if level:
        body["instantiationLevelId"] = level
    if vim:
        body["vimConnectionInfo"] = {"vim": {"vimId": vim}}
    _add_params(body, param, params)
    return start_operation(session, find_vnf(session.client, name).body, "instantiate", body, plan=plan, wait=wait)


@command(app, "terminate", example="slipway vnf terminate mycluster --graceful --timeout 60")
def terminate(
    session: Session,
    name: Name,
    forceful: Annotated[
        bool | None,
        typer.Option("--forceful/--graceful", help="At once, or after leaving service; graceful if unsaid."),
    ] = None,
    timeout: Annotated[int | None, typer.Option(min=1, help="Seconds for leaving service; graceful only.")] = None,
    param: Params = None,
    plan: Plan = False,
    wait: Wait = True,
) -> int:
    """Remove everything that runs. The record stays until `slipway vnf delete`."""
    if forceful and timeout is not None:
        raise typer.BadParameter("a forceful termination waits for nothing.", param_hint="--timeout")
    body: dict[str, Any] = {"terminationType": "FORCEFUL" if forceful else "GRACEFUL"}
    if timeout is not None:
        body["gracefulTerminationTimeout"] = timeout
    _add_params(body, param)
    return start_operation(session, find_vnf(session.client, name).body, "terminate", body, plan=plan, wait=wait)


@command(app, "scale", example="slipway vnf scale mycluster --aspect workers --out --steps 2")
def scale(
    session: Session,
    name: Name,
    aspect: Annotated[str, typer.Option(help="What to scale: an aspect of the VNFD.")],
    out: Annotated[bool, typer.Option("--out/--in", help="Grow or shrink.")] = True,
    steps: Annotated[int, typer.Option(min=1, help="By how many steps.")] = 1,
    param: Params = None,
    plan: Plan = False,
    wait: Wait = True,
) -> int:
    """Add or remove VNFCs, step by step of an aspect."""
    body: dict[str, Any] = {
        "type": "SCALE_OUT" if out else "SCALE_IN",
        "aspectId": aspect,
        "numberOfSteps": steps,
    }
    _add_params(body, param)
    return start_operation(session, find_vnf(session.client, name).body, "scale", body, plan=plan, wait=wait)


@command(app, "heal", example="slipway vnf heal mycluster --vnfc workerNode-1 --cause 'disk failed'")
def heal(
    session: Session,
    name: Name,
    vnfc: Annotated[
        list[str] | None, typer.Option(metavar="VNFC", help="A VNFC's id or machine name; repeatable; all if unsaid.")
    ] = None,
    all_resources: Annotated[
        bool,
        typer.Option("--all-resources", help="Make ports, volumes and networks anew, too. Volumes lose their data."),
    ] = False,
    cause: Annotated[str | None, typer.Option(help="Why, for the record.")] = None,
    param: Params = None,
    plan: Plan = False,
    wait: Wait = True,
) -> int:
    """Make broken VNFCs anew in their places."""
    vnf = find_vnf(session.client, name).body
    body: dict[str, Any] = {}
    if vnfc:
        body["vnfcInstanceId"] = vnfc_ids(vnf, vnfc)
    if cause is not None:
        body["cause"] = cause
    _add_params(body, param)
    if all_resources:
        body.setdefault("additionalParams", {})["all"] = True
    return start_operation(session, vnf, "heal", body, plan=plan, wait=wait)


@command(app, "change-ext-conn", example="slipway vnf change-ext-conn mycluster --network workerNode_CP2=net-b --plan")
def change_ext_conn(
    session: Session,
    name: Name,
    network: Annotated[
        list[str] | None,
        typer.Option(metavar="CP=NETWORK", help="A connection point and the VIM's network for it; repeatable."),
    ] = None,
    param: Params = None,
    request: WholeRequest = None,
    plan: Plan = False,
    wait: Wait = True,
) -> int:
    """Move connection points of a VNF to other networks. Addresses are asked for in --request."""
    if bool(network) == bool(request):
        raise typer.BadParameter("say what to connect, either here or in --request.", param_hint="--network")
    vnf = find_vnf(session.client, name).body
    body = read_mapping(request, "--request") if request else {"extVirtualLinks": _links(vnf, network)}
    _add_params(body, param)
    return start_operation(session, vnf, "change_ext_conn", body, plan=plan, wait=wait)


@command(app, "change-package", example="slipway vnf change-package mycluster --package cluster-2 --plan")
def change_package(
    session: Session,
    name: Name,
    package: Annotated[str, typer.Option(help="The new package: its id, its VNFD's id, or the name it was given.")],
    param: Params = None,
    params: ParamsFile = None,
    plan: Plan = False,
    wait: Wait = True,
) -> int:
    """Bring a VNF to another package of the same product, VNFC by VNFC. A cluster gets that package's Kubernetes."""
    vnf = find_vnf(session.client, name).body
    body: dict[str, Any] = {"vnfdId": vnfd_of(session, package)}
    _add_params(body, param, params)
    return start_operation(session, vnf, "change_vnfpkg", body, plan=plan, wait=wait)


@command(app, "modify", example="slipway vnf modify mycluster --description 'the test cluster' --metadata team=core")
def modify(
    session: Session,
    name: Name,
    new_name: Annotated[str | None, typer.Option("--name", help="A new name.")] = None,
    description: Annotated[str | None, typer.Option(help="A new description.")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Metadata to set; null removes; repeatable.")
    ] = None,
    prop: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="KEY=VALUE", help="A configurable property; null removes; repeatable."),
    ] = None,
    wait: Wait = True,
) -> int:
    """Change a VNF's record, unless it was changed meanwhile."""
    body: dict[str, Any] = {}
    if new_name is not None:
        body["vnfInstanceName"] = new_name
    if description is not None:
        body["vnfInstanceDescription"] = description
    if metadata:
        body["metadata"] = assignments(metadata, "--metadata")
    if prop:
        body["vnfConfigurableProperties"] = assignments(prop, "--property")
    if not body:
        raise typer.BadParameter("say what to change: --name, --description, --metadata or --property.")
    vnf = find_vnf(session.client, name)
    answer = session.client.patch(item_path(INSTANCES, vnf.body["id"]), body, etag=vnf.etag)
    return follow_operation(session, answer.made, wait=wait)


def _links(vnf: dict[str, Any], networks: list[str] | None) -> list[dict[str, Any]]:
    """The link that the VNF has to a network already, or a new one of the network's name."""
    there = (vnf.get("instantiatedVnfInfo") or {}).get("extVirtualLinkInfo") or ()
    known = {link["resourceHandle"]["resourceId"]: link["id"] for link in there}
    links: dict[str, dict[str, Any]] = {}
    for point, network in string_assignments(networks, "--network").items():
        id_ = known.get(network, network if network not in known.values() else f"to {network}")
        link = links.setdefault(network, {"id": id_, "resourceId": network, "extCps": []})
        link["extCps"].append({"cpdId": point})
    return list(links.values())


def _add_params(body: dict[str, Any], given: list[str] | None, file: Path | None = None) -> None:
    """The file, then single parameters over it."""
    params = body.get("additionalParams") or {}
    if file:
        params = params | read_mapping(file, "--params")
    if params := params | assignments(given, "--param"):
        body["additionalParams"] = params
