"""Findings in sources of kernels, without running them."""
