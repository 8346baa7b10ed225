"""What a user types for a tile shape, turned into what it means."""

from __future__ import annotations


def tile_named(text: str) -> tuple[int, ...]:
    """`64,128` as (64, 128).

    Raises:
        ValueError: no list of positive ints.
    """
    try:
        tile = tuple(int(entry) for entry in text.split(","))
    except ValueError:
        tile = ()
    if not tile or any(entry < 1 for entry in tile):
        raise ValueError(f"a tile is positive ints with commas between, as in 64,128; got {text!r}")
    return tile
