"""Remote hosts over SSH: commands, files and long jobs."""
