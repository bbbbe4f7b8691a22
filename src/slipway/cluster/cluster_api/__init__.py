"""Workload clusters of Cluster API: their credentials, sent to a receiver and registered as a VIM."""
