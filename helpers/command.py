"""How every command of the package speaks: one line an event, one line an error, and an exit code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from helpers.errors import WorkshopError


def run(main: Callable[[], int]) -> int:
    """Run a command's `main`; a failure that the user can mend becomes one line on stderr and exit code 1.

    >>> run(lambda: 0)
    0
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("helpers").setLevel(logging.INFO)
    try:
        return main()
    except WorkshopError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
