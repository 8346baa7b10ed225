"""Number formats, rounding and conversion: which bits a cast gives."""
