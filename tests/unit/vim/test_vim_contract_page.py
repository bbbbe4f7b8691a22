"""The contract's page can't rot: what it names is there, its examples of code run, its example of rules is one."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import msgspec

from slipway.model.errors import VimFault
from slipway.model.vim import SIMULATED
from slipway.vim.contract import VimDriver
from slipway.vim.fault_rules import CALLS, Rule, RuleKind, read_rules
from tests.contract.life import OnDriver

PAGE = (Path(__file__).parents[3] / "docs" / "contracts" / "vim.md").read_text()


def test_the_page_names_all_verbs_faults_calls_and_rules() -> None:
    verbs = [name for name in vars(VimDriver) if not name.startswith("_")]
    words = [*verbs, *VimFault, *RuleKind, *CALLS, *Rule.__struct_fields__]
    missing = [word for word in words if not re.search(rf"[`\"]{word}\b", PAGE)]
    assert missing == []
    assert SIMULATED in PAGE


def test_the_page_names_what_a_subclass_of_the_suite_may_say() -> None:
    said = [name for name in vars(OnDriver) if not name.startswith("_") and name not in ("life", "flavours")]
    assert [name for name in said if not re.search(rf"^\|[^|]*`{name}\b", PAGE, re.MULTILINE)] == []


def test_the_example_of_rules_is_valid() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(read_rules(msgspec.json.decode(example)["rules"])) == 3


def test_the_modules_that_the_page_names_have_what_it_says() -> None:
    named = re.findall(r"`src/(slipway/[a-z_/]+)\.py` \((`[^)]*)\)", PAGE)
    assert len(named) >= 4
    for module, names in named:
        there = importlib.import_module(module.replace("/", "."))
        assert [name for name in re.findall(r"`(\w+)`", names) if not hasattr(there, name)] == [], module


def test_the_examples_of_code_run() -> None:
    """Names in annotations are looked up too: these blocks are compiled without this file's future import."""
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, "docs/contracts/vim.md", "exec", dont_inherit=True), {"__name__": "example"})  # noqa: S102
