"""How a database of an earlier Slipway becomes one of this. Run by `store/migrate.py`, never by hand."""
