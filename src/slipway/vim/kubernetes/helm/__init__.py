"""Helm releases on a Kubernetes VIM: the program `helm`, run apart, behind the same contract as plain objects."""
