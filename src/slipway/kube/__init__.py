"""A Kubernetes cluster through its API: what the steps of clusters and of CNFs do there."""
