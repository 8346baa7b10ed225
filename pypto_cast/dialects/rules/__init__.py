"""What each framework makes of a pair of number formats, in conversions of the numerical core."""
