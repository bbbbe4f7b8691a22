"""A VIM for the machine in front of you: machines are containers with systemd and SSH, by the Docker Engine API.

The engine holds all the state, in names and labels made from ids: containers are machines, networks are networks, and
engine volumes stand for ports (their labels are the record) and block volumes (their content is the disk).
"""

from slipway.vim.sandbox.driver import SandboxDriver

__all__ = ["SandboxDriver"]
