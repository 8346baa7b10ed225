"""The context: tile shapes, chip, release, measured device, and the hints of upstream."""

from pypto_cast.former_names import names_of

__getattr__ = names_of(__name__)
