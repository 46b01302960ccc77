"""`python -m opscope` is the command `opscope`."""

import sys

from opscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
