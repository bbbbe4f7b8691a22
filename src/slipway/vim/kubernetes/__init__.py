"""A Kubernetes cluster as a VIM: objects of any kind, applied in waves."""
