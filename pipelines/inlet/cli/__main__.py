"""`python -m inlet.cli`, and the program of `spark-submit`."""

import sys

if __name__ == "__main__" and not __spec__:  # run as a file, whose folder has an `inspect` of its own
    del sys.path[0]

from inlet.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
