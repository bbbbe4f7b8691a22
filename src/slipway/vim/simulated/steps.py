"""Plans of a simulated VIM: machine by machine, as the sandbox's are."""

from __future__ import annotations

from slipway.vim.machine_by_machine import MachineByMachine

TIMEOUT = 60.0  # seconds for one attempt at a step
PLANNER = MachineByMachine(prefix="simulated", words="A simulated VIM", timeout=TIMEOUT)
steps_towards = PLANNER.steps_towards
