"""Kubernetes clusters as VNFs: parameters, checks and plans, all pure; steps/ has the actions that do the work."""
