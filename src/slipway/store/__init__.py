"""Tables, queries, migrations and secrets at rest: one code path for SQLite and PostgreSQL."""
