"""Runs plans durably: every step journalled, one owner at a time, goes on after kill -9. docs/engine.md tells how."""
