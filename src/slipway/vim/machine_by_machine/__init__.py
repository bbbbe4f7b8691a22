"""Plans for VIMs that make one machine at a time: one step each, the same for all such drivers.

A driver gives its action's prefix and its time limit; its hands take the arguments declared here.
"""

from slipway.vim.machine_by_machine.steps import MachineByMachine

__all__ = ["MachineByMachine"]
