"""Management drivers: what a VNF wants done around the VIM's work, as steps of the plan."""
