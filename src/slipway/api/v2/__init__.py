"""VNF lifecycle management as SOL003 3.3.1 has it."""
