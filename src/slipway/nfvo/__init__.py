"""The NFVO: who has to agree before an operation touches anything."""
