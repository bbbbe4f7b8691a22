"""For VIMs that make one machine at a time: the wanted value, and one step for each machine.

A driver gives its action's prefix and its time limit; its actions take the arguments declared here.
"""

from slipway.vim.machine_by_machine.steps import MachineByMachine, MachineByMachineDriver

__all__ = ["MachineByMachine", "MachineByMachineDriver"]
