"""A VIM without a cloud and clusters without machines. Only app.py may import this package."""
