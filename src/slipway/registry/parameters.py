"""What a request says about a registry: `additionalParams.private_registry_installation_param`.

Requests written for other managers must be understood as they stand, so their names are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal

from slipway.cluster.schema import ListOf, Nested, Parameters, Problems, Refusal, kind_of_value, read
from slipway.cluster.values import (
    Secret,
    choice,
    flag,
    host_name,
    key_text,
    name,
    no_proxy_list,
    package_path,
    proxy_url,
    pulled_image,
    registry_user,
    secret,
    user,
    whole,
)
from slipway.model.descriptor import Flavour
from slipway.model.errors import BadRequest
from slipway.model.json_documents import merge_patch

NAME = "private_registry_installation_param"
PATH = f"additionalParams.{NAME}"
DEFAULT_IMAGE = "docker.io/library/registry:2"
LONGEST_PASSWORD = 72  # bytes: bcrypt takes no more
IMAGES, ARCHIVE = "Files/images/", ".tar"  # where packages have images that the registry begins with


def names(value: Any) -> tuple[str, ...]:
    """A list of host names."""
    if not isinstance(value, list | tuple):
        raise Refusal(f"must be a list, not {kind_of_value(value)}", 'write ["registry.example.com", ...]')
    return tuple(host_name(one) for one in value)


def served_user(value: Any) -> str:
    """Whom a line of htpasswd can name."""
    if registry_user(value).startswith("#") or value != value.strip():
        raise Refusal("it begins with # or a blank, or ends with one, which htpasswd loses", "give another name")
    return str(value)


def served_password(value: Any) -> Secret:
    """What bcrypt takes whole."""
    made = secret(value)
    if isinstance(made.document, str) and len(made.document.encode()) > LONGEST_PASSWORD:
        raise Refusal(f"it has more than {LONGEST_PASSWORD} bytes, which bcrypt does not take", "give a shorter one")
    return made


class TlsParameters(Parameters, frozen=True, kw_only=True):
    """A certificate with its key, or none: then one is made, for the machine's address and these names."""

    certificate_path: Annotated[str | None, package_path] = None
    private_key: Annotated[Secret | None, key_text] = None
    names: Annotated[tuple[str, ...], names] = ()

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if ("certificate_path" in given) != ("private_key" in given):
            missing = "private_key" if "certificate_path" in given else "certificate_path"
            yield missing, Refusal("it is missing beside the other half of the certificate", "give both or neither")
        if "certificate_path" in given and given.get("names"):
            yield "names", Refusal("the certificate that is given has its own names", "leave one of them out")


class RegistryUser(Parameters, frozen=True, kw_only=True):
    username: Annotated[str, served_user]
    password: Annotated[Secret, served_password]


class RegistryProxy(Parameters, frozen=True, kw_only=True):
    """By which the machine fetches packages and the registry's own image."""

    http_proxy: Annotated[Secret | None, proxy_url] = None
    https_proxy: Annotated[Secret | None, proxy_url] = None
    no_proxy: Annotated[str | None, no_proxy_list] = None


class InstallationParameters(Parameters, frozen=True, kw_only=True):
    ssh_cp_name: Annotated[str, name]
    ssh_username: Annotated[str, user]
    ssh_password: Annotated[Secret | None, secret] = None
    ssh_private_key: Annotated[Secret | None, key_text] = None
    ssh_port: Annotated[int, whole(1, 65535)] = 22
    source: Annotated[Literal["image", "package"], choice("image", "package")] = "image"
    image_path: Annotated[str | None, package_path] = None
    image: Annotated[str | None, pulled_image] = None
    package_path: Annotated[str | None, package_path] = None
    port_no: Annotated[int, whole(1, 65535)] = 5000
    tls: Annotated[TlsParameters | None, Nested(TlsParameters)] = None
    users: Annotated[tuple[RegistryUser, ...], ListOf(RegistryUser)] = ()
    data_volume: Annotated[str | None, name] = None
    load_images: Annotated[bool, flag] = True
    proxy: Annotated[RegistryProxy, Nested(RegistryProxy)] = RegistryProxy()

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if "ssh_password" not in given and "ssh_private_key" not in given:
            refusal = Refusal("there is neither ssh_password nor ssh_private_key", "give one of them to log in with")
            yield "ssh_password", refusal
        if given.get("source", "image") == "package":
            for other in ("image_path", "image"):
                if other in given:
                    yield other, Refusal("with source package there is no container", "leave one of them out")
        elif "package_path" in given:
            yield "package_path", Refusal("it is for source package", "say source: package, or leave it out")
        if "image_path" in given and "image" in given:
            yield "image", Refusal("it contradicts image_path", "give one of them")
        if given.get("port_no", 5000) == given.get("ssh_port", 22):
            yield "port_no", Refusal("SSH has that port on the machine", "choose another")
        names = [one.username for one in given.get("users", ())]
        if len(set(names)) != len(names):
            yield "users", Refusal("a user is there twice", "name each once")


def read_installation(additional_params: dict[str, Any]) -> InstallationParameters:
    """BadRequest that names everything that is wrong."""
    if additional_params.get(NAME) is None:
        raise BadRequest(f"{PATH}: is missing; say in it how the registry's machine is reached (ssh_cp_name, ...).")
    return read(InstallationParameters, additional_params[NAME], PATH)


def document_now(stored: dict[str, Any], additional_params: dict[str, Any]) -> dict[str, Any]:
    """Of a later request: what was stored, and over it what the request says anew, as both were written."""
    given = additional_params.get(NAME)
    if given is not None and not isinstance(given, dict):
        return {NAME: given}
    return {NAME: merge_patch(stored.get(NAME) or {}, given or {})}


def check_installation(parameters: InstallationParameters, flavour: Flavour, files: Collection[str]) -> None:
    """Against the VNFD and the package's files: BadRequest that names everything that does not fit."""
    problems = Problems()
    point = flavour.connection_points.get(parameters.ssh_cp_name)
    if point is None or point.vdu not in flavour.vdus:
        known = ", ".join(flavour.connection_points) or "(there is none)"
        refusal = Refusal(f"there is no connection point {parameters.ssh_cp_name!a}", f"write one of: {known}")
        problems.add(f"{PATH}.ssh_cp_name", refusal)
    elif parameters.data_volume is not None:
        vdu = flavour.vdus[point.vdu]
        own = [name for name in vdu.storages if name not in vdu.boot_order]
        if parameters.data_volume not in own:
            refusal = Refusal(
                f"{point.vdu} has no storage {parameters.data_volume!a}",
                f"write one of: {', '.join(own) or '(there is none)'}",
            )
            problems.add(f"{PATH}.data_volume", refusal)
    named = {
        "image_path": parameters.image_path,
        "package_path": parameters.package_path,
        "tls.certificate_path": parameters.tls.certificate_path if parameters.tls else None,
    }
    for parameter, file in named.items():
        if file is not None and file not in files:
            refusal = Refusal(f"the package has no file {file}", "name one that it has, or add it to the package")
            problems.add(f"{PATH}.{parameter}", refusal)
    problems.raise_if_any()


def archives_of(parameters: InstallationParameters, files: Collection[str]) -> list[str]:
    """The package's images that the registry begins with; that of the registry itself is none of them."""
    if not parameters.load_images:
        return []
    found = (path for path in files if path.startswith(IMAGES) and path.endswith(ARCHIVE))
    return sorted(path for path in found if path != parameters.image_path)
