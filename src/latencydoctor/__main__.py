"""`python -m latencydoctor` is the same program as `latencydoctor`."""

import sys

from latencydoctor.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
