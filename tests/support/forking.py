"""A process that has used its connection, and then forks children that enqueue; run by a test as a script.

Forking a process with threads, as the tests' own has, is not what is to be shown.
"""

import os
import sys

import django

CHILDREN, EACH = 8, 1_000


def main() -> int:
    """Fork the children; return how many of them failed."""
    django.setup()
    from priqueue import enqueue  # noqa: PLC0415 (models need the set-up first)

    enqueue("tests.shop.jobs.note", {"n": -1})
    children = []
    for child in range(CHILDREN):
        pid = os.fork()
        if not pid:
            for number in range(EACH):
                enqueue("tests.shop.jobs.note", {"n": child * EACH + number})
            os._exit(0)
        children.append(pid)
    return sum(os.waitpid(pid, 0)[1] != 0 for pid in children)


if __name__ == "__main__":
    sys.exit(main())
