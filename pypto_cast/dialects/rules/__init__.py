"""The rule of each framework for a pair of formats, in conversions of the numerical core."""
