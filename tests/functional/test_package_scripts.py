"""Scripts that a package brings: called at the hooks that its VNFD names, with what they need, and heard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.model.errors import PackageError, Unprocessable, VimFault
from slipway.model.journal import StepState
from slipway.model.operation import Operation, OperationType, State
from slipway.model.package import OnboardingState, VnfPackage
from slipway.model.requests import (
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ModifyRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.model.secrets import redact
from slipway.package.build import build_package
from slipway.settings import Settings
from slipway.vim.fault_rules import Rule, RuleKind
from tests.databases import setting
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.rig import SIMULATED_VIM, Rig, rig_in, settings_in
from tests.functional.scripted_package import SCRIPT, scripted_tree
from tests.script_sandbox import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.sqlite_suffices]

CONTRACT = Path(__file__).parents[2] / "docs" / "contracts" / "mgmt.md"
OPERATIONS = ("instantiate", "scale", "heal", "terminate", "modify_information")
ALL_HOOKS = [f"{operation}_{edge}" for operation in OPERATIONS for edge in ("start", "end")]
PASSWORD = "canary-password-for-the-script"

TELLING = """
import json, os, sys
given = json.load(sys.stdin)
vnf = given["vnfInstance"]
told = {
    "state": vnf["instantiationState"],
    "machines": len(vnf.get("instantiatedVnfInfo", {}).get("vnfcResourceInfo", [])),
    "keys": sorted(given),
    "flavourId": given["request"].get("flavourId"),
    "knows": given["additionalParams"].get("password") or given["request"].get("additionalParams", {}).get("password"),
    "package": sorted(os.listdir(given["packageDirectory"])),
}
if told["knows"]:
    told["knows"] = "the password, of length %d" % len(told["knows"])
calls = [*vnf.get("metadata", {}).get("calls", []), given["operation"]]
print(json.dumps({"vnfInstance": {"metadata": {given["operation"]: told, "calls": calls}}}))
"""

# As scripts for OpenStack Tacker do it.
PICKLED = """
import json, pickle, sys
given = pickle.load(sys.stdin.buffer)
vnf, request = given["vnf_instance"], given["request"]
told = {"keys": sorted(given), "state": vnf["instantiationState"], "flavour": request["flavourId"]}
if given["operation"] == "instantiate_start":
    print(json.dumps({"vnfInstance": {"metadata": {given["operation"]: told}}}))
"""

# Fails as often as `failures` says, counting in what it leaves for the next try.
FAILING = """
import json, sys
given = json.load(sys.stdin)
left = given["userScriptErrHandlingData"] or {"tries": 0}
answer = {"userScriptErrHandlingData": {"tries": left["tries"] + 1, "token": "canary-token-left"}}
if left["tries"] < 2:
    print(json.dumps(answer))
    print("the device \\x1b[31msays no to " + given["request"]["additionalParams"]["password"], file=sys.stderr)
    sys.exit(3)
print(json.dumps({"vnfInstance": {"metadata": {"left": {"tries": left["tries"], "saw": len(left["token"])}}}}))
"""


def settings_for(directory: Path, url: URL, **more: Any) -> Settings:
    return settings_in(directory, setting(url), **more)


async def instantiated(rig: Rig, instance_id: str) -> Operation:
    request = InstantiateRequest(flavour_id="simple", additional_params={"password": PASSWORD})
    return await rig.run(OperationType.INSTANTIATE, instance_id, request)


async def test_scripts_are_called_around_the_vims_work_and_their_answers_stay(
    tmp_path: Path, database_url: URL
) -> None:
    tree = scripted_tree(tmp_path, ALL_HOOKS, TELLING)
    async with rig_in(settings_for(tmp_path, database_url), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        operation = await instantiated(rig, instance_id)
        assert operation.operation_state is State.COMPLETED, operation.error
        told = (await rig.instance(instance_id)).vnf.metadata
        start, end = told["instantiate_start"], told["instantiate_end"]
        assert (start["state"], start["machines"]) == ("NOT_INSTANTIATED", 0)
        assert (end["state"], end["machines"]) == ("INSTANTIATED", 3)
        assert told["calls"] == ["instantiate_start", "instantiate_end"]
        assert start["knows"] == f"the password, of length {len(PASSWORD)}"
        assert start["flavourId"] == "simple"
        assert start["package"] == ["Definitions", "Scripts", "TOSCA-Metadata"]
        assert start["keys"] == [
            "additionalParams", "grant", "grantRequest", "inputs", "operation", "packageDirectory", "request",
            "userScriptErrHandlingData", "vnfInstance", "workloadCluster",
        ]  # fmt: skip
        journal = {record.id: record for record in await rig.journal(operation.id)}
        first, last = journal[f"instantiate_start: {SCRIPT}"], journal[f"instantiate_end: {SCRIPT}"]
        work = [record for record in journal.values() if record.action != "script.run"]
        assert all((record.started_at or 0) >= (first.ended_at or 0) for record in work)
        assert all((record.ended_at or 0) <= (last.started_at or 0) for record in work)

        await rig.run(OperationType.SCALE, instance_id, ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers"))
        await rig.run(OperationType.HEAL, instance_id, HealRequest())
        await rig.run(OperationType.MODIFY_INFO, instance_id, ModifyRequest(metadata={"by": "me"}))
        ending = TerminateRequest(termination_type=TerminationType.FORCEFUL)
        ended = await rig.run(OperationType.TERMINATE, instance_id, ending)
        assert ended.operation_state is State.COMPLETED, ended.error
        told = (await rig.instance(instance_id)).vnf.metadata
        assert told["calls"] == ALL_HOOKS[:6] + ALL_HOOKS[8:] + ALL_HOOKS[6:8]
        assert [told[f"scale_{edge}"]["machines"] for edge in ("start", "end")] == [3, 4]
        assert told["terminate_start"]["machines"] == 4
        assert told["terminate_end"]["state"] == "NOT_INSTANTIATED"
        assert told["heal_end"]["knows"] == start["knows"]  # nobody has to repeat it
        assert told["by"] == "me"


async def test_a_script_that_reads_a_pickle_is_given_one_with_the_names_it_knows(tmp_path: Path) -> None:
    tree = scripted_tree(tmp_path, ["instantiate_start", "instantiate_end"], PICKLED)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        operation = await instantiated(rig, instance_id)
        assert operation.operation_state is State.COMPLETED, operation.error
        told = (await rig.instance(instance_id)).vnf.metadata["instantiate_start"]
        assert (told["state"], told["flavour"]) == ("NOT_INSTANTIATED", "simple")
        assert told["keys"] == [
            "additionalParams", "grant_request", "grant_response", "inputs", "operation", "request", "tmp_csar_dir",
            "user_script_err_handling_data", "vnf_instance", "workloadCluster",
        ]  # fmt: skip


async def test_a_modification_of_a_vnf_that_does_not_run_calls_nobody(tmp_path: Path) -> None:
    tree = scripted_tree(tmp_path, ALL_HOOKS, TELLING)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        done = await rig.run(OperationType.MODIFY_INFO, instance_id, ModifyRequest(metadata={"by": "me"}))
        assert done.operation_state is State.COMPLETED
        assert (await rig.instance(instance_id)).vnf.metadata == {"by": "me"}


async def test_what_a_failed_script_left_comes_back_at_each_retry(tmp_path: Path, database_url: URL) -> None:
    tree = scripted_tree(tmp_path, ["instantiate_end"], FAILING)
    async with rig_in(settings_for(tmp_path, database_url), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        failed = await instantiated(rig, instance_id)
        for tries in (1, 2):
            assert failed.operation_state is State.FAILED_TEMP
            assert failed.error is not None
            assert f"{SCRIPT}, the script for instantiate_end, ended with exit code 3." in failed.error.detail
            assert r"It said: the device \x1b[31msays no to ***" in failed.error.detail
            assert "Cure: mend the script" in failed.error.detail
            assert redact(failed.error.user_script_err_handling_data) == {"tries": tries}
            await rig.slipway.lcm.retry(failed.id)
            failed = await rig.rest(failed.id)
        assert failed.operation_state is State.COMPLETED, failed.error
        assert failed.error is None
        vnf = (await rig.instance(instance_id)).vnf
        assert vnf.metadata["left"] == {"tries": 2, "saw": len("canary-token-left")}
    for name, content in stored_in(tmp_path).items():
        assert b"canary-token-left" not in content, name
        assert PASSWORD.encode() not in content, name


def stored_in(directory: Path) -> dict[str, bytes]:
    """All files but the package, which is no secret."""
    files = [file for file in directory.rglob("*") if file.is_file() and "tree" not in file.parts]
    return {str(file): file.read_bytes() for file in files if file.suffix != ".csar"}


async def test_the_data_survive_a_try_that_fails_before_the_script(tmp_path: Path) -> None:
    """A start script leaves something, then the VIM fails: the operation's error carries it."""
    code = """print('{"userScriptErrHandlingData": {"reached": "start"}}')"""
    tree = scripted_tree(tmp_path, ["instantiate_start"], code)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        await fail_at(rig, "make_machine")
        failed = await instantiated(rig, await rig.create())
        assert failed.error is not None
        assert failed.error.user_script_err_handling_data == {"reached": "start"}
        await rig.slipway.lcm.retry(failed.id)
        failed = await rig.rest(failed.id)
        assert failed.error is not None
        assert failed.error.user_script_err_handling_data == {"reached": "start"}


async def fail_at(rig: Rig, call: str) -> None:
    rule = Rule(kind=RuleKind.ERROR, call=call, fault=VimFault.PERMANENT, message="no")
    await rig.slipway.simulated.set_rules(SIMULATED_VIM, [rule])


ROLLED_BACK = """
import json, sys
given = json.load(sys.stdin)
vnf = given["vnfInstance"]
if given["operation"] == "instantiate_end":
    sys.exit("no")
machines = len(vnf.get("instantiatedVnfInfo", {}).get("vnfcResourceInfo", []))
calls = [*vnf.get("metadata", {}).get("calls", []), given["operation"]]
print(json.dumps({"vnfInstance": {"metadata": {"calls": calls, given["operation"]: machines}}}))
"""


async def test_a_rollback_calls_its_hooks_before_and_after_the_vims_undoing(tmp_path: Path, database_url: URL) -> None:
    hooks = ["instantiate_start", "instantiate_end", "instantiate_rollback_start", "instantiate_rollback_end"]
    tree = scripted_tree(tmp_path, hooks, ROLLED_BACK)
    async with rig_in(settings_for(tmp_path, database_url), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        failed = await instantiated(rig, instance_id)
        assert failed.operation_state is State.FAILED_TEMP
        await rig.slipway.lcm.roll_back(failed.id)
        back = await rig.rest(failed.id)
        assert back.operation_state is State.ROLLED_BACK, back.error
        assert await rig.inventory() == {}
        metadata = (await rig.instance(instance_id)).vnf.metadata
        assert metadata["instantiate_rollback_start"] == 3  # the machines are still there
        assert metadata["instantiate_rollback_end"] == 0
        assert metadata["calls"][-1] == "instantiate_rollback_end"
        assert "instantiate_start" not in metadata  # what was undone is not remembered


async def test_rollback_hooks_need_no_others_beside_them(tmp_path: Path) -> None:
    tree = scripted_tree(tmp_path, {"instantiate_end": "noop", "instantiate_rollback_end": "own-script"}, ROLLED_BACK)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        await fail_at(rig, "make_machine")
        instance_id = await rig.create()
        failed = await instantiated(rig, instance_id)
        await rig.slipway.lcm.roll_back(failed.id)
        assert (await rig.rest(failed.id)).operation_state is State.ROLLED_BACK
        assert (await rig.instance(instance_id)).vnf.metadata["calls"] == ["instantiate_rollback_end"]
        states = {record.id: record.state for record in await rig.journal(failed.id)}
        assert states["instantiate_start: nothing but its rollback"] is StepState.UNDONE


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("pass", "there is none"),
        ("print('hello')", "it is not JSON"),
        ("print('[1]')", "not a JSON object"),
        ("""print('{"vnfInstance": {"id": "other"}}')""", "vnfInstance.id: a script may change metadata"),
        ("""print('{"vnfInstance": {"vimConnectionInfo": {}}}')""", "vnfInstance.vimConnectionInfo"),
        ("""print('{"vnfInstance": {"metadata": 3}}')""", "vnfInstance.metadata: must be an object"),
        ("""print('{"vnfInstance": {"metadata": {"x": {"$secret": "1"}}}}')""", "is reserved"),
        ("""print('{"vnfInstance": {"metadata": {"x": "\\\\u0000"}}}')""", "NUL"),
        ("""print('{"vnfInstance": {"metadata": {"x": %d}}}' % 10**30)""", "too large"),
        ("""print('{"vnfInstance": {"metadata": %s}}' % ('{"x":' * 100 + "1" + "}" * 100))""", "deep"),
        ("""print('{"x": ' + "[" * 100000)""", "not JSON"),
        ("""print('{"vnf_instance": {}}')""", "'vnf_instance' must be one of: vnfInstance"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_refused_with_its_place(tmp_path: Path, code: str, what: str) -> None:
    tree = scripted_tree(tmp_path, ["instantiate_start"], code)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        failed = await instantiated(rig, await rig.create())
        assert failed.operation_state is State.FAILED_TEMP
        assert failed.error is not None
        assert what in failed.error.detail
        assert "print one JSON object" in failed.error.detail
        assert await rig.inventory() == {}


# Each answer is as large as one may be, and each goes under a name of its own.
GROWING = """
import json, sys
given = json.load(sys.stdin)
size = given["request"]["additionalParams"]["size"]
print(json.dumps({"vnfInstance": {"metadata": {given["operation"]: "x" * size}}}))
"""


async def test_answers_together_are_no_more_than_is_kept(tmp_path: Path) -> None:
    tree = scripted_tree(tmp_path, ["instantiate_start", "instantiate_end"], GROWING)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        request = InstantiateRequest(flavour_id="simple", additional_params={"size": 600_000})
        failed = await rig.run(OperationType.INSTANTIATE, instance_id, request)
        assert failed.operation_state is State.FAILED_TEMP
        assert failed.error is not None
        assert f"{SCRIPT}, the script for instantiate_end, ended with 0" in failed.error.detail
        assert "metadata: it would have 1200" in failed.error.detail
        await rig.slipway.lcm.fail(failed.id)
        assert list((await rig.instance(instance_id)).vnf.metadata) == ["instantiate_start"]


async def test_a_script_can_be_a_shell_script(tmp_path: Path) -> None:
    tree = scripted_tree(
        tmp_path,
        ["instantiate_end"],
        """cd "$(dirname "$0")/../TOSCA-Metadata" && echo '{"vnfInstance": {"extensions": {"a": "b"}}}'""",
        file="Scripts/hooks.sh",
        kind="tosca.artifacts.Implementation.Bash",
    )
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        done = await instantiated(rig, instance_id)
        assert done.operation_state is State.COMPLETED, done.error
        assert (await rig.instance(instance_id)).vnf.extensions == {"a": "b"}


async def test_the_example_of_the_contract_does_what_it_says(tmp_path: Path) -> None:
    code = CONTRACT.read_text().partition("```python\n")[2].partition("```")[0]
    tree = scripted_tree(tmp_path, ["instantiate_end"], code)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        failed = await instantiated(rig, await rig.create())
        assert failed.error is not None
        assert "It said: Files/balancer.cfg is missing in the package" in failed.error.detail
        assert failed.error.user_script_err_handling_data == {"tries": 1}
    (tree / "Files").mkdir()
    (tree / "Files" / "balancer.cfg").write_text("")
    async with rig_in(settings_in(tmp_path / "again"), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        done = await instantiated(rig, instance_id)
        assert done.operation_state is State.COMPLETED, done.error
        assert len((await rig.instance(instance_id)).vnf.metadata["balanced"]) >= 3


async def test_a_change_of_package_calls_the_scripts_of_the_new_one(tmp_path: Path) -> None:
    hooks = ["instantiate_end", "change_current_package_end"]
    tree = scripted_tree(tmp_path, hooks, TELLING)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        instance_id = await rig.create()
        await instantiated(rig, instance_id)
        new = next_package(tree, tmp_path, NEXT_ID, words={})
        (new / "Scripts" / "only-here").write_text("")
        (new / SCRIPT).write_text(
            TELLING.replace('given["packageDirectory"]', 'given["packageDirectory"] + "/Scripts"')
        )
        assert (await uploaded(rig, new, tmp_path)).onboarding_state is OnboardingState.ONBOARDED
        change = ChangePackageRequest(vnfd_id=NEXT_ID)
        done = await rig.run(OperationType.CHANGE_VNFPKG, instance_id, change)
        assert done.operation_state is State.COMPLETED, done.error
        vnf = (await rig.instance(instance_id)).vnf
        assert vnf.metadata["change_current_package_end"]["package"] == ["hooks.py", "only-here"]
        assert vnf.vnfd_id == NEXT_ID


async def uploaded(rig: Rig, tree: Path, directory: Path) -> VnfPackage:
    content = build_package(tree, directory / "upload.csar").path.read_bytes()

    async def chunks() -> Any:
        yield content

    package = await rig.slipway.onboarding.create({})
    return await rig.slipway.onboarding.upload(package.id, chunks())


@pytest.mark.parametrize(
    ("hooks", "options", "what"),
    [
        ({"heal_end": "somebody-else"}, {}, "'somebody-else' is not a built-in management driver"),
        (["heal_end"], {"file": "Scripts/hooks.pl", "kind": "tosca.artifacts.File"}, "neither Python nor Bash"),
        ({"heal_rollback_end": "somebody-else"}, {}, "Hook 'heal_rollback_end' of flavour"),
    ],
)
async def test_a_hook_that_nobody_can_do_is_refused_at_onboarding(
    tmp_path: Path, hooks: Any, options: dict[str, str], what: str
) -> None:
    async with rig_in(settings_in(tmp_path / "data")) as rig:
        package = await uploaded(rig, scripted_tree(tmp_path, hooks, "", **options), tmp_path)
        assert package.onboarding_state is OnboardingState.CREATED
        failure = package.onboarding_failure_details
        assert failure is not None
        assert failure.status == PackageError.status == Unprocessable.status
        assert what in failure.detail
        assert "Definitions/cluster_df_" in failure.detail
        assert "mgmt-drivers-kubernetes" in failure.detail
        assert "a .py or .sh file" in failure.detail


@pytest.mark.parametrize("name", ["vnflcm_noop", "mgmt-container-update"])
async def test_what_is_built_in_goes_before_the_packages_copy(tmp_path: Path, name: str) -> None:
    tree = scripted_tree(tmp_path, ["instantiate_end"], "raise SystemExit('never run')", name=name)
    async with rig_in(settings_in(tmp_path), hooks=None, sample=tree) as rig:
        done = await instantiated(rig, await rig.create())
        assert done.operation_state is State.COMPLETED, done.error
        assert all(record.action != "script.run" for record in await rig.journal(done.id))
