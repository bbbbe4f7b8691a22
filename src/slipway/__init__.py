"""Slipway: an ETSI NFV VNF Manager whose first-class network function is a Kubernetes cluster."""

__version__ = "0.1.0"
