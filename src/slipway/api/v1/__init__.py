"""SOL003 2.6.1: the same core as v2, said in the words of an older version of the standard."""
