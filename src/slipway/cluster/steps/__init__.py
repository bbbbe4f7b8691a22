"""The hands behind a cluster's plans: one file for each kind of work, each step safe to run again."""
