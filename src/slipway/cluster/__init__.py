"""What a Kubernetes cluster is made of. Decisions and documents here are pure; hands come in files of their own."""
