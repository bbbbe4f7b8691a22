"""One file a revision, numbered; each says what it changes and why."""
