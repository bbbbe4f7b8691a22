"""What each step of a cluster by kubespray does."""
