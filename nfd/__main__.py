"""`python -m nfd` is the command `nfd`."""

import sys

from nfd.cli import main

sys.exit(main())
