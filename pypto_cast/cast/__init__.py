"""The cast: its plan, its call, its report and its explanation."""
