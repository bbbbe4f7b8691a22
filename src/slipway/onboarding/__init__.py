"""VNF packages: uploaded or downloaded, checked, enabled, disabled, deleted."""
