"""The external load balancer of a cluster and CNFs behind it: HAProxy on a machine of its own."""
