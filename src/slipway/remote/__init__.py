"""Hands on a machine: commands, files and long jobs over SSH."""
