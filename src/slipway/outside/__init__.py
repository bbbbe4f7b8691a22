"""Requests to addresses that somebody gave us: one guard for all of them."""
