"""A Kubernetes cluster through its API: what the steps of a cluster, and later of containers, do there."""
