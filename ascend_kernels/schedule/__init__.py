"""A kernel's whole tile program: its type, the reader of upstream's dump, its lowering."""
