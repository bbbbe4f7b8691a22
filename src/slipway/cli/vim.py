"""`slipway vim`: the places VNFs run on, registered once and used by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli.assignments import FILE_HINT, read_mapping, secrets
from slipway.cli.output import facts, short_time, table
from slipway.cli.paths import VIMS, item_path
from slipway.cli.session import Session, command
from slipway.cli.sim import parse_rule
from slipway.model.vim import SHORT_TYPES

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="VIM", help="The VIM's name or id.")]
DEFAULT_ENDPOINTS = {"simulated": "sim://{}", "sandbox": "sandbox://local"}


@command(app, "add", example="slipway vim add lab --type simulated --endpoint sim://lab --default")
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="`openstack`, `kubernetes`, `simulated`, `sandbox`, or the full vimType; the file may say it.",
        ),
    ] = None,
    os_cloud: Annotated[
        str | None,
        typer.Option(
            metavar="CLOUD",
            help="An OpenStack, as this entry of a clouds.yaml has it, or `envvars`.",
        ),
    ] = None,
    clouds_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The clouds.yaml, if it is at none of its usual places.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A Kubernetes cluster, as this kubeconfig has it.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Another context of the kubeconfig than its current one.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Where it is; for a simulated one sim://NAME.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Use it for requests that name no VIM.")] = False,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    access: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="How to log in; repeatable. Others on this machine can read a command line: "
            "write password=@FILE, or password=- to be asked.",
        ),
    ] = None,
    access_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"How to log in, in YAML or JSON; {FILE_HINT}.")
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="More about how to reach it; repeatable. ssl_ca_cert=@FILE reads a file."
        ),
    ] = None,
    extra_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Settings of its driver, in YAML or JSON; {FILE_HINT}.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="Whose it is, if not your own project's; for an admin of all projects.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="A simulated VIM's fault, as `slipway sim rules --add` has it; repeatable."),
    ] = None,
) -> None:
    """Register a VIM."""
    rules = [parse_rule(one, "--rule") for one in rule or ()]
    kind, read_interface, read_access = _found(kind, os_cloud, clouds_file, kubeconfig, context)
    interface_info = read_interface | secrets(interface, "--interface")[0]
    if kind in DEFAULT_ENDPOINTS:
        interface_info.setdefault("endpoint", DEFAULT_ENDPOINTS[kind].format(name))
    if endpoint:
        interface_info["endpoint"] = endpoint
    body: dict[str, Any] = {
        "name": name,
        "vimType": SHORT_TYPES.get(kind, kind),
        "project": project,
        "description": description,
        "isDefault": default or None,
        "interfaceInfo": interface_info,
        "accessInfo": read_access | _access(session, access, access_file),
        "extra": read_mapping(extra_file, "--extra-file") if extra_file else None,
    }
    vim = session.client.post(VIMS, {key: value for key, value in body.items() if value}).body
    if rules:
        session.client.put(item_path(VIMS, vim["id"], "rules"), rules)
    session.output.show(vim, lambda: _facts(vim))


@command(app, "list", example="slipway vim list")
def list_vims(session: Session) -> None:
    """All registered VIMs."""
    found = list(session.client.pages(VIMS))
    columns = {"ID": "", "NAME": "bold", "TYPE": "", "ENDPOINT": "", "DEFAULT": ""}
    session.output.show(found, lambda: table(columns, (_row(vim) for vim in found)))


@command(app, "show", example="slipway vim show lab")
def show(session: Session, vim: Name) -> None:
    """One VIM. Its secrets are never shown."""
    found = session.client.get(item_path(VIMS, vim)).body
    session.output.show(found, lambda: _facts(found))


@command(app, "check", example="slipway vim check lab")
def check(session: Session, vim: Name) -> int:
    """Log in to a VIM and say whether it can be used. Exit code 0 if so."""
    found = session.client.post(item_path(VIMS, vim, "check")).body
    fault = f" ({found['fault']})" if found.get("fault") else ""
    verdict = "can be used" if found["ok"] else f"can't be used{fault}"
    detail = f" {found['detail']}" if found.get("detail") else ""
    session.output.show(found, lambda: f"VIM {vim} {verdict}.{detail}")
    return 0 if found["ok"] else 1


@command(app, "remove", example="slipway vim remove lab")
def remove(session: Session, vim: Name) -> None:
    """Forget a VIM that no VNF is on."""
    session.client.delete(item_path(VIMS, vim))
    session.output.show({"name": vim, "deleted": True}, lambda: f"Removed VIM {vim}.")


@command(app, "set-default", example="slipway vim set-default lab")
def set_default(session: Session, vim: Name) -> None:
    """Use this VIM for requests that name none."""
    answer = session.client.patch(item_path(VIMS, vim), {"isDefault": True}).body
    session.output.show(answer or {"name": vim, "isDefault": True}, lambda: f"VIM {vim} is the default.")


def _found(
    kind: str | None, cloud: str | None, clouds: Path | None, kubeconfig: Path | None, context: str | None
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The type, and what files of the VIM's own world say of its interface and access."""
    if cloud and kubeconfig:
        raise typer.BadParameter("a VIM is an OpenStack or a Kubernetes cluster.", param_hint="--kubeconfig")
    if (clouds and not cloud) or (context and not kubeconfig):
        missing = "--os-cloud" if clouds and not cloud else "--kubeconfig"
        raise typer.BadParameter(f"it goes with {missing}.", param_hint="--clouds-file" if clouds else "--context")
    described = "openstack" if cloud else "kubernetes" if kubeconfig else None
    if described and kind not in (None, described, SHORT_TYPES[described]):
        raise typer.BadParameter(f"what the file describes is of type {described}.", param_hint="--type")
    if cloud:
        from slipway.cli.os_cloud import read_cloud

        return "openstack", *read_cloud(clouds, cloud, lambda file: read_mapping(file, "--clouds-file"))
    if kubeconfig:
        from slipway.cli.kubeconfig import read_kubeconfig

        return "kubernetes", *read_kubeconfig(read_mapping(kubeconfig, "--kubeconfig"), context, kubeconfig)
    if kind is None:
        raise typer.BadParameter(f"give one of: {', '.join(SHORT_TYPES)}.", param_hint="--type")
    return kind, {}, {}


def _access(session: Session, given: list[str] | None, file: Path | None) -> dict[str, Any]:
    """The file, then single values over it."""
    values, resolve_connection = secrets(given, "--access")
    for key in resolve_connection:
        session.output.note(f"Warning: others on this machine may have read {key}; better {key}=@FILE or {key}=-.")
    return (read_mapping(file, "--access-file") if file else {}) | values


def _row(vim: dict[str, Any]) -> tuple[object, ...]:
    endpoint = (vim.get("interfaceInfo") or {}).get("endpoint")
    return vim["id"], vim["name"], vim["vimType"], endpoint, "yes" if vim.get("isDefault") else ""


def _facts(vim: dict[str, Any]) -> Any:
    return facts(
        [
            ("VIM", vim["id"]),
            ("Name", vim["name"]),
            ("Type", vim["vimType"]),
            ("Description", vim.get("description")),
            ("Default", "yes" if vim.get("isDefault") else "no"),
            ("Interface", vim.get("interfaceInfo")),
            ("Access", ", ".join(sorted(vim.get("accessInfo") or {}))),
            ("Extra", vim.get("extra")),
            ("Created", short_time(vim.get("createdAt"))),
        ]
    )
