"""A clock that a test moves, for a whole process: a server, or a worker. See clockshift.c."""

import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("clockshift.c")
COMPILER = shutil.which("cc")


class ShiftedClock:
    """What to put into a process's environment, and the lever that moves its time of day."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "shift"
        self._library = folder / "clockshift.so"
        self.shift(0)
        assert COMPILER, "moving a process's clock takes a C compiler: put cc on the PATH"
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", self._library, _SOURCE, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(self._library), "CLOCKSHIFT": str(self._file)}

    def shift(self, seconds: int) -> None:
        """Move the clock: so many seconds ahead of the true time, or behind it."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("@l", seconds))
