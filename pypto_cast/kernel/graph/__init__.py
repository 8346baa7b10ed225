"""The recorded kernel as a graph of operations, as the planner takes it."""
