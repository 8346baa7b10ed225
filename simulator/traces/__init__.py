"""Instructions against the clock."""
