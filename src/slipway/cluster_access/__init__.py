"""Running clusters outside of any operation: health, kubeconfig, renewal of tokens."""
