"""Chains of casts in the words of pypto."""
