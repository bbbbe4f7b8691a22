"""The command line: a client of the HTTP API, and the way to start the server."""
