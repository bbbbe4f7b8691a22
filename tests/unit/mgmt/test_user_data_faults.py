"""User data that fails or means harm: an error that names file, class, operation, what was said and the cure."""

from __future__ import annotations

import sys

import pytest

from slipway.mgmt.script_limits import ScriptLimits
from slipway.mgmt.user_data import SECONDS, UserDataScripts
from slipway.model.errors import StepError
from slipway.model.secrets import reference
from tests.script_sandbox import needs_sandbox
from tests.unit.mgmt.user_data_runs import FILE, INSTANTIATE, Context, Records, stack

pytestmark = [needs_sandbox, pytest.mark.usefixtures("place")]

AMPLE = ScriptLimits(seconds=30)  # on a busy machine a sandbox takes seconds to begin


def answering(answer: str, before: str = "pass") -> str:
    """User data of the second form that does something, and answers."""
    return f"""
import json, os, socket, sys, time, yaml
class Data:
    @staticmethod
    def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
        {before}
        return {answer}
"""


async def failure(code: str, limits: ScriptLimits = AMPLE, class_name: str = "Data") -> StepError:
    given = {**INSTANTIATE, "additionalParams": {"password": reference("secret-1")}}
    with pytest.raises(StepError) as raised:
        await stack(
            Records(code, given=given),
            class_name=class_name,
            limits=limits,
            context=Context({"secret-1": "canary-word"}),
        )
    assert str(raised.value).startswith(f"{FILE}, user data for instantiate: {class_name} ")
    assert "Cure: " in str(raised.value)
    assert "canary-word" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("class Other: pass", "is not a class of that file; it has: Other"),
        ("Data = 3", "is not a class of that file; it has: none"),
        ("class Data: pass", "has no method instantiate()"),
        ("import tacker.db", "can't be loaded: ModuleNotFoundError: No module named 'tacker.db' (UserData/data.py:1)"),
        ("class Data(:", "can't be loaded: SyntaxError"),
        ("raise SystemExit(0)", "can't be loaded: SystemExit: 0 (UserData/data.py:1)"),
        (answering("req['nothing']"), "failed: KeyError: 'nothing' (UserData/data.py:7)"),
        (answering("sys.exit('no')"), "failed: SystemExit: no (UserData/data.py:7)"),
        (answering("1 / 0", "print('on the way', file=sys.stderr)"), "(UserData/data.py:7). It said: on the way"),
        (answering("[1]"), "answered list from instantiate(), and must answer a dict"),
        (answering("None"), "answered NoneType from instantiate()"),
        (answering("{'parameters': {'a': {1, 2}}}"), "answered what can't be written as JSON: set is none of JSON's"),
        (answering("{'parameters': {'a': float('nan')}}"), "answered what can't be written as JSON"),
        (answering("{'template': 'a: ['}"), "answered a template that is not YAML"),
        (answering("{'template': 'only words'}"), "can't be used: stack.template: Expected `object | null`, got `str`"),
        (answering("{'parameters': []}"), "can't be used: stack.parameters: Expected `object | null`, got `array`"),
        (answering("{'files': {'a.yaml': {}}}"), "can't be used: stack.files[...]: Expected `str`, got `object`"),
        (answering("{'stack_name': 'mine'}"), "can't be used: stack: Object contains unknown field `stack_name`"),
        (answering("{'existing': 'yes'}"), "can't be used: stack.existing: Expected `bool | null`, got `str`"),
        (answering("{'parameters': {'a': 'x\\0y'}}"), "can't be used: stack: a string holds a NUL character."),
        (answering("{'parameters': {'a': 1 << 70}}"), "can't be used: stack: a number is too large"),
        (answering("{'parameters': {'$secret': 'secret-1'}}"), "can't be used: stack/parameters: the key '$secret' is"),
        (answering("{'parameters': x}", "x = {}; [x := {'a': x} for _ in range(40)]"), "nested more than 32 levels"),
        (answering("x", "x = {}; x['x'] = x"), "answered what can't be written as JSON: Circular reference"),
        (answering("{}", "os._exit(0)"), "can't be used: it is not JSON"),
        (answering("{}", "os.kill(os.getpid(), 9)"), "was ended by SIGKILL"),
        (answering("{}", "raise ValueError(req['additionalParams']['password'])"), "failed: ValueError: ***"),
    ],
)  # fmt: skip
async def test_what_fails_is_named(code: str, said: str) -> None:
    assert said in str(await failure(code))


async def test_user_data_has_a_minute_and_no_more() -> None:
    error = await failure(answering("{}", "while True: pass"), ScriptLimits(seconds=2))
    assert "timed out after 2 s. Cure: make it quicker, or raise script_seconds." in str(error)
    (action,) = UserDataScripts(Records(), ScriptLimits(seconds=3600)).actions
    assert SECONDS < action.timeout < 3600


async def test_an_answer_without_end_is_cut_off() -> None:
    assert "printed more than 1 MiB on stdout" in str(await failure(answering("{'files': {'a': 'x' * (2 << 20)}}")))


async def test_what_it_prints_is_no_answer() -> None:
    code = answering("{'parameters': {}}", 'print(\'{"stack": {"parameters": {"hostile": 1}}}\', flush=True)')
    assert await stack(Records(code)) == {"parameters": {}}


async def test_threads_that_it_leaves_hold_nothing_up() -> None:
    begin = "import threading; threading.Thread(target=time.sleep, args=(60,)).start()"
    assert await stack(Records(answering("{'parameters': {}}", begin)), limits=AMPLE) == {"parameters": {}}


async def test_user_data_has_no_network() -> None:
    connect = "socket.create_connection(('192.0.2.1', 80), timeout=1)"
    assert "failed: OSError: [Errno 101] Network is unreachable" in str(await failure(answering("{}", connect)))
    interfaces = await stack(Records(answering("{'parameters': {'all': [n for _, n in socket.if_nameindex()]}}")))
    assert interfaces == {"parameters": {"all": ["lo"]}}


LOOK = """
import os

class Data:
    @staticmethod
    def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
        found = []
        for top, below, names in os.walk("/"):
            below[:] = [one for one in below if os.path.join(top, one) not in ("/proc", "/usr", PREFIX)]
            found += [os.path.join(top, one) for one in names if one.endswith((".db", ".key")) or "slipway" in one]
        writable = []
        for place in ("/modules", "/package", "/modules/tacker", "/"):
            try:
                open(os.path.join(place, "mine"), "w")
                writable.append(place)
            except OSError:
                pass
        return {"parameters": {
            "found": found,
            "writable": writable,
            "top": sorted(os.listdir("/")),
            "modules": sorted(os.listdir("/modules")),
            "environment": sorted(os.environ),
            "user": os.getuid(),
        }}
"""


async def test_user_data_sees_the_package_and_the_modules_that_are_made_for_it() -> None:
    seen = (await stack(Records(f"PREFIX = {sys.base_prefix!r}\n{LOOK}")))["parameters"]
    assert (seen["found"], seen["writable"]) == ([], [])
    assert {"modules", "package", "usr"} <= set(seen["top"])
    assert not {"root", "home", "run", "var", "sys"} & (set(seen["top"]) - {sys.base_prefix.split("/")[1]})
    assert seen["modules"] == ["oslo_log", "run_user_data.py", "tacker", "v1_objects.py", "yaml"]
    assert {"HOME", "LANG", "PATH"} <= set(seen["environment"]) <= {"HOME", "LANG", "PATH", "LC_CTYPE", "PWD"}
