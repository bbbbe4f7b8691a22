"""A Kubernetes cluster as a VIM: registered, checked; what runs on it is yet to come."""
