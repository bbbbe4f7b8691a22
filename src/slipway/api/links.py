"""`_links`: where a resource is and what can be done with it now. Spliced into JSON text that nobody takes apart."""

from __future__ import annotations

import json
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

_HERE = "\x00"  # JSON text never holds it: in a template it stands for the id


class _Head(msgspec.Struct, rename="camel"):
    """What links depend on. All else in a document is passed over."""

    id: str


class _InstanceHead(_Head, rename="camel"):
    instantiation_state: InstantiationState


class _OperationHead(_Head, rename="camel"):
    operation_state: State
    vnf_instance_id: str
    grant_id: str | None = None


class _PackageHead(_Head, rename="camel"):
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
_instance_head = msgspec.json.Decoder(_InstanceHead).decode
_operation_head = msgspec.json.Decoder(_OperationHead).decode
_package_head = msgspec.json.Decoder(_PackageHead).decode
_head = msgspec.json.Decoder(_Head).decode


class Links:
    """Each method gives the JSON object of one document's links. `lcm` is the version that those of VNFs stay in."""

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
        self._vim_links = _template(self.vims, {"self": ""})

    def instance(self, document: bytes | str) -> str:
        head = _instance_head(document)
        return self._instance_links[head.instantiation_state].replace(_HERE, head.id)

    def operation(self, document: bytes | str) -> str:
        head = _operation_head(document)
        own = self._operation_links[head.operation_state].replace(_HERE, head.id)
        links = f'{own[:-1]},"vnfInstance":{{"href":"{self.instances}/{head.vnf_instance_id}"}}'
        if head.grant_id and self._grants:
            where = json.dumps(f"{self._grants}/{quote(head.grant_id, safe='')}")
            links += f',"grant":{{"href":{where}}}'
        return links + "}"

    def package(self, document: bytes | str) -> str:
        head = _package_head(document)
        return self._package_links[head.onboarding_state].replace(_HERE, head.id)

    def onboarded_package(self, document: bytes | str) -> str:
        """By its VNFD, unless the caller did not want to know that."""
        head = _package_head(document)
        if head.vnfd_id is None:
            return self.package(document)
        return self._onboarded_links.replace(_HERE, quote(head.vnfd_id, safe=""))

    def vim(self, document: bytes | str) -> str:
        return self._vim_links.replace(_HERE, _head(document).id)


def linked(document: bytes, links: str) -> bytes:
    """The document with its links. It is an object with at least an id."""
    return b'%s,"_links":%s}' % (document[:-1], links.encode())


def _template(collection: str, relations: dict[str, str]) -> str:
    links = {name: {"href": f"{collection}/{_HERE}{suffix}"} for name, suffix in relations.items()}
    return json.dumps(links, separators=(",", ":"), ensure_ascii=False).replace("\\u0000", _HERE)
