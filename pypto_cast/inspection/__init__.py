"""One cast looked at closely: its bits, its report, its trace."""
