"""Of a schedule: its times, its trace, its rows, and where it differs from another."""
