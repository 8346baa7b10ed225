"""INT8 codes of weights with a scale for each channel."""
