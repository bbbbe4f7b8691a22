"""The contract's page can't rot: what it must name, it names, and its example of rules is one."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from slipway.model.errors import VimFault
from slipway.model.vim import SIMULATED
from slipway.vim.contract import VimDriver
from slipway.vim.simulated.rules import CALLS, Rule, RuleKind, read_rules

PAGE = (Path(__file__).parents[3] / "docs" / "contracts" / "vim.md").read_text()


def test_the_page_names_all_verbs_faults_calls_and_rules() -> None:
    verbs = [name for name in vars(VimDriver) if not name.startswith("_")]
    words = [*verbs, *VimFault, *RuleKind, *CALLS, *Rule.__struct_fields__]
    missing = [word for word in words if not re.search(rf"[`\"]{word}\b", PAGE)]
    assert missing == []
    assert SIMULATED in PAGE


def test_the_example_of_rules_is_valid() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(read_rules(msgspec.json.decode(example)["rules"])) == 3
