"""Planning the tile program of a kernel, stage by stage as upstream's compiler does."""
