"""The command line program, as the wheel installs it."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    # The program has an answer of its own to Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
