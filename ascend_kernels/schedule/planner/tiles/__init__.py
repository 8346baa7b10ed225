"""From the operations of a kernel to tile operations, cut into the graphs of tasks."""
