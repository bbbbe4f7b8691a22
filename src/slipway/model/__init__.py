"""Plain data and rules. Nothing in here does input or output."""
