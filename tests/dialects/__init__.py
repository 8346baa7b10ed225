"""A package: on the path, this folder would pass its own folders off as the frameworks."""
