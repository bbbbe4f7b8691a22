"""Benchmarks, printed as ratios against the peer's figures on the same kind of machine. Nothing here is asserted."""
