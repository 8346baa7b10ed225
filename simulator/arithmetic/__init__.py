"""The vector operations around a cast."""
