"""pypto's operations that read, write or order elements by index."""
