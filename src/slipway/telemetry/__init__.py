"""Metrics, log and traces."""
