"""The API server of a simulated cluster: a store of objects, the verbs on them, and the controllers that matter."""
