"""`python -m pypto_cast` is the `pypto-cast` command."""

import sys

from pypto_cast.cli.main import main

sys.exit(main())
