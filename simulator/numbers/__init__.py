"""Number formats, rounding and conversion, and the engines that carry conversions out."""
