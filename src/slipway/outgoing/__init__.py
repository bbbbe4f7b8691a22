"""Outgoing HTTP requests, and the guard against server-side request forgery (SSRF) that all of them pass."""
