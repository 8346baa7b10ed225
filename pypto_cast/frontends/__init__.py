"""Casts of other ecosystems, one dialect a module, each with the words of its own ecosystem.

A dialect is a table plus a call into the numerical core; none imports its framework unless asked.
"""
