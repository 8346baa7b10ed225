"""The dtypes of pypto, and every spelling of them."""

from pypto_cast.former_names import names_of

__getattr__ = names_of(__name__)
