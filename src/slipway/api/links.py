"""`_links`: where a resource is and what can be done with it now. Spliced into its JSON text without decoding it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from slipway.model.instance import InstantiationState
from slipway.model.operation import RUNNING, State
from slipway.model.package import OnboardingState

LCM_V1 = "/vnflcm/v1"
LCM_V2 = "/vnflcm/v2"
PACKAGES = "/vnfpkgm/v1/vnf_packages"
ONBOARDED_PACKAGES = "/vnfpkgm/v1/onboarded_vnf_packages"
VIMS = "/slipway/v1/vims"

_ID_MARK = "\x00"  # JSON text never holds it: it stands for the id


class LinkFields(msgspec.Struct, rename="camel", gc=False):
    """What links depend on. All else in a document is passed over."""

    id: str


class _InstanceLinkFields(LinkFields, rename="camel", gc=False):
    instantiation_state: InstantiationState


class _OperationLinkFields(LinkFields, rename="camel", gc=False):
    operation_state: State
    vnf_instance_id: str
    grant_id: str | None = None


class _PackageLinkFields(LinkFields, rename="camel", gc=False):
    onboarding_state: OnboardingState
    vnfd_id: str | None = None


_WITH_AN_INSTANTIATED = {
    LCM_V1: {
        "terminate": "/terminate",
        "scale": "/scale",
        "heal": "/heal",
        "changeExtConn": "/change_ext_conn",
    },
    LCM_V2: {
        "terminate": "/terminate",
        "scale": "/scale",
        "heal": "/heal",
        "changeExtConn": "/change_ext_conn",
        "changeCurrentVnfPkg": "/change_vnfpkg",
    },
}


H = TypeVar("H", bound=LinkFields)


class LinkBuilder(Generic[H]):
    """The links of documents of one kind, each as a JSON object."""

    def __init__(self, head: type[H], written: Callable[[H], str]) -> None:
        self._heads = msgspec.json.Decoder(head)
        self._written = written

    def __call__(self, document: bytes | str) -> str:
        return self._written(self._heads.decode(document))

    def each(self, documents: str) -> list[str]:
        """Those of many documents, one a line."""
        return [self._written(head) for head in self._heads.decode_lines(documents)]


class Links:
    """`lcm` is the version of the API that links of VNFs stay in."""

    def __init__(self, base_url: str, lcm: str = LCM_V2, *, nfvo_url: str | None = None) -> None:
        base = base_url.rstrip("/")
        self._grants = f"{nfvo_url.rstrip('/')}/grant/v1/grants" if nfvo_url else None
        self.instances_path = f"{lcm}/vnf_instances"
        self.operations_path = f"{lcm}/vnf_lcm_op_occs"
        self.instances = base + self.instances_path
        self.operations = base + self.operations_path
        self.packages = base + PACKAGES
        self.vims = base + VIMS
        possible = {
            InstantiationState.NOT_INSTANTIATED: {"instantiate": "/instantiate"},
            InstantiationState.INSTANTIATED: _WITH_AN_INSTANTIATED[lcm],
        }
        self._instance_links = {
            state: _template(self.instances, {"self": "", **actions}) for state, actions in possible.items()
        }
        decide = {"retry": "/retry", "rollback": "/rollback", "fail": "/fail"}
        self._operation_links = {
            state: _template(
                self.operations,
                {
                    "self": "",
                    **(decide if state is State.FAILED_TEMP else {}),
                    **({"cancel": "/cancel"} if state in RUNNING else {}),
                },
            )
            for state in State
        }
        content = {"self": "", "packageContent": "/package_content"}
        self._package_links = {
            state: _template(self.packages, content | ({"vnfd": "/vnfd"} if state is OnboardingState.ONBOARDED else {}))
            for state in OnboardingState
        }
        self._onboarded_links = _template(base + ONBOARDED_PACKAGES, {**content, "vnfd": "/vnfd"})
        vim_links = _template(self.vims, {"self": ""})
        self.instance = LinkBuilder(_InstanceLinkFields, self._of_instance)
        self.operation = LinkBuilder(_OperationLinkFields, self._of_operation)
        self.package = LinkBuilder(_PackageLinkFields, self._of_package)
        self.onboarded_package = LinkBuilder(_PackageLinkFields, self._of_onboarded_package)
        self.vim = LinkBuilder(LinkFields, lambda head: head.id.join(vim_links))

    def _of_instance(self, head: _InstanceLinkFields) -> str:
        return head.id.join(self._instance_links[head.instantiation_state])

    def _of_operation(self, head: _OperationLinkFields) -> str:
        own = head.id.join(self._operation_links[head.operation_state])
        links = f'{own[:-1]},"vnfInstance":{{"href":"{self.instances}/{head.vnf_instance_id}"}}'
        if head.grant_id and self._grants:
            where = json.dumps(f"{self._grants}/{quote(head.grant_id, safe='')}")
            links += f',"grant":{{"href":{where}}}'
        return links + "}"

    def _of_package(self, head: _PackageLinkFields) -> str:
        return head.id.join(self._package_links[head.onboarding_state])

    def _of_onboarded_package(self, head: _PackageLinkFields) -> str:
        """By its VNFD, unless the caller did not want to know that."""
        if head.vnfd_id is None:
            return self._of_package(head)
        return quote(head.vnfd_id, safe="").join(self._onboarded_links)


def linked(document: bytes, links: str) -> bytes:
    """The document with its links. It is an object with at least an id."""
    return b'%s,"_links":%s}' % (document[:-1], links.encode())


def _template(collection: str, relations: dict[str, str]) -> list[str]:
    """The pieces of the JSON text that an id stands between."""
    links = {name: {"href": f"{collection}/{_ID_MARK}{suffix}"} for name, suffix in relations.items()}
    return json.dumps(links, separators=(",", ":"), ensure_ascii=False).split("\\u0000")
