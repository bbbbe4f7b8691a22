"""The actions of cluster plans: one file for each kind of work, each step safe to run again."""
