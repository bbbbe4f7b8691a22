"""Lifecycle operations: one file each, from request to plan, and what its end means for the instance's record."""
