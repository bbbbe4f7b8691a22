"""The client of an NFVO, which grants operations (SOL003 clause 9)."""
