"""Clusters that kubespray builds, run by Ansible on a server that is there already."""
