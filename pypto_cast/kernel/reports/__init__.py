"""Reports and pictures of a kernel's schedules, tasks and certainty."""
