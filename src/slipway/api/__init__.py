"""HTTP: translates between the wire and `lcm/`. Nothing is decided here but who may come in and in what form."""
