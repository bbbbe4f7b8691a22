"""What the steps of a registry do."""
