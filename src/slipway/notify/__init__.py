"""Subscriptions and notifications: stored with the change they report, delivered until they arrive."""
