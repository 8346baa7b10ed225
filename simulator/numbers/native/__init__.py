"""The native engine: the conversions of the definition as compiled loops, called by ctypes."""
