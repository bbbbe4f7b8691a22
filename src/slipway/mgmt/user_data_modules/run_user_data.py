"""Runs a package's user data inside the sandbox: JSON on stdin, one JSON object on stdout.

There is nothing of Slipway in here but this directory. Errors are sentences for a person: {"error": "..."}.
"""

from __future__ import annotations

import datetime
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import yaml
from tacker.sol_refactored.common.common_script_utils import get_param_capacity, get_vnfd
from tacker.sol_refactored.common.vnfd_utils import Vnfd, dig
from tacker.sol_refactored.infra_drivers.openstack.userdata_utils import AbstractUserData as SecondForm
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData as FirstForm
from v1_objects import V1Object

Document = dict[str, Any]


class UserDataError(Exception):
    """Why there is no answer; follows the name of the class."""


def main() -> None:
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what the package prints is for people
        given = json.load(sys.stdin)
        sys.path.append(given["packageDirectory"])
        try:
            text = json.dumps({"stack": stack_for(given)}, default=_written, allow_nan=False)
        except UserDataError as error:
            text = json.dumps({"error": str(error)})
        except (TypeError, ValueError, RecursionError) as error:
            text = json.dumps({"error": f"answered what can't be written as JSON: {error}"})
        answers.write(text)


def stack_for(given: Document) -> Document:
    """`template`, `parameters`, `files` and `existing`, as far as the package has an opinion."""
    found = _class(given)
    method = getattr(found, given["operation"], None)
    if not callable(method) or getattr(method, "__isabstractmethod__", False):
        if given["operation"] != "instantiate":
            return {}
        raise UserDataError("has no method instantiate()")
    try:
        answer = method(*arguments(found, given))
    except UserDataError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a package raises
        raise UserDataError(f"failed: {_told(error, given)}") from None
    if _is_second_form(found):
        return _fields(_mapping(answer, given))
    if not answer and given["operation"] != "instantiate":
        return {}
    return {"parameters": _mapping(answer, given)}


def arguments(found: type, given: Document) -> list[Any]:
    if _is_second_form(found):
        keys = ("request", "vnfInstance", "grantRequest", "grant", "packageDirectory")
        return [given[key] for key in keys]
    return _first_form_arguments(given)


# --- the class


def _class(given: Document) -> type:
    module_name = given["path"].removesuffix(".py").replace("/", ".")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a package raises
        raise UserDataError(f"can't be loaded: {_told(error, given)}") from None
    found = getattr(module, given["class"], None)
    if not isinstance(found, type):
        own = [name for name, one in vars(module).items() if isinstance(one, type) and one.__module__ == module_name]
        raise UserDataError(f"is not a class of that file; it has: {', '.join(own) or 'none'}")
    return found


def _is_second_form(found: type) -> bool:
    """By the class that it derives from; otherwise by what its method takes."""
    if issubclass(found, SecondForm | FirstForm):
        return issubclass(found, SecondForm)
    names = list(inspect.signature(getattr(found, "instantiate", lambda: None)).parameters)
    return "tmp_csar_dir" in names or "grant_req" in names or len(names) == 5


def _told(error: BaseException, given: Document) -> str:
    """What it is, and the last line of the package that led there."""
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    directory = given["packageDirectory"] + "/"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(directory)]
    return f"{said} ({frames[-1].filename.removeprefix(directory)}:{frames[-1].lineno})" if frames else said


# --- what the first form is given


def _first_form_arguments(given: Document) -> list[Any]:
    request, instance = given["request"], given["vnfInstance"]
    info: Document = instance.get("instantiatedVnfInfo") or {}
    flavour_id = str(request.get("flavourId") or info.get("flavourId"))
    vnfd = get_vnfd(instance["vnfdId"], given["packageDirectory"])
    described = [_templates(vnfd, flavour_id), _flavour(vnfd, flavour_id, given)]
    if given["operation"] == "instantiate":
        return [*described, V1Object(request), _images(given)]
    recorded = V1Object(info, vnf_instance_id=instance["id"], additional_params=given["additionalParams"])
    record = V1Object(instance, vnf_metadata=instance.get("metadata") or {}, instantiated_vnf_info=recorded)
    common = [*described, V1Object(request), record, recorded, given["stackParameters"]]
    if given["operation"] == "heal":
        return [*common, _healed(request, info, recorded)]
    return [*common, _members_after(vnfd, flavour_id, given)]


def _templates(vnfd: Vnfd, flavour_id: str) -> Document:
    hot = vnfd.get_base_hot(flavour_id)
    if "template" not in hot:
        raise UserDataError(f"can't be run: BaseHOT/{flavour_id} of the package has no template")
    return {**hot.get("files", {}), "heat_template": hot["template"]}


def _flavour(vnfd: Vnfd, flavour_id: str, given: Document) -> Document:
    """As the VNFD has it, but for images that the package carries: these have the names that the VIM knows."""
    document = vnfd.get_vnfd_flavour(flavour_id)
    for name, image in given["images"].items():
        data = dig(document, "topology_template", "node_templates", name, "properties", "sw_image_data")
        if isinstance(data, dict):
            data["name"] = image
    return document


def _images(given: Document) -> dict[str, list[V1Object]]:
    """By VDU and storage, as what was made of the package's images."""
    common = {"resourceType": "image", "resourceStatus": "CREATED", "vnfInstanceId": given["vnfInstance"]["id"]}
    return {
        name: [V1Object(common, resource_name=name, resource_identifier=image)]
        for name, image in given["images"].items()
    }


def _healed(request: Document, info: Document, recorded: V1Object) -> list[V1Object]:
    """Those that the request names, by one of the ids of a VNFC; all when it names none."""
    named = set(request.get("vnfcInstanceId") or ())
    named |= {one.get("vnfcResourceInfoId") for one in info.get("vnfcInfo", ()) if one["id"] in named}
    return [vnfc for vnfc in recorded.vnfc_resource_info if not named or vnfc.id in named]


def _members_after(vnfd: Vnfd, flavour_id: str, given: Document) -> int | None:
    """How many members the first VDU of the aspect has after the scaling."""
    vdus = vnfd.get_scale_vdu_and_num(flavour_id, given["request"].get("aspectId", ""))
    return next((get_param_capacity(vdu, given["vnfInstance"], given["grantRequest"]) for vdu in vdus), None)


# --- what is answered


def _mapping(answer: Any, given: Document) -> Document:
    if not isinstance(answer, Mapping):
        raise UserDataError(f"answered {type(answer).__name__} from {given['operation']}(), and must answer a dict")
    return dict(answer)


def _fields(answer: Document) -> Document:
    """The top template is answered as YAML."""
    if isinstance(answer.get("template"), str):
        try:
            answer["template"] = yaml.safe_load(answer["template"])
        except yaml.YAMLError as error:
            raise UserDataError(f"answered a template that is not YAML: {' '.join(str(error).split())}") from None
    return answer


def _written(value: Any) -> Any:
    """YAML reads `heat_template_version: 2013-05-23` as a date."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is none of JSON's types")


if __name__ == "__main__":
    main()
    os._exit(0)  # whatever threads the package has begun
