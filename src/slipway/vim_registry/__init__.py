"""Registered VIMs, which VIM an operation uses, and clusters that become VIMs."""
