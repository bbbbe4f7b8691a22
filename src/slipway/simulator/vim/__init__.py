"""A VIM whose machines are records in a file: fast, outlives a crash, and lies on request.

It is a first-class backend, for trying Slipway without any cloud and for testing how operations bear a bad VIM.
"""

from slipway.simulator.vim.driver import SimulatedDriver
from slipway.vim.fault_rules import Rule, RuleKind

__all__ = ["Rule", "RuleKind", "SimulatedDriver"]
