"""`python -m pypto_cast.cli` is the `pypto-cast` command too."""

import sys

from pypto_cast.cli.main import main

sys.exit(main())
