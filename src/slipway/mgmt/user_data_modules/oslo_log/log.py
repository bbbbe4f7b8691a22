"""Loggers, as OpenStack's modules get them. What they write goes to stderr."""

from logging import getLogger

__all__ = ["getLogger"]
