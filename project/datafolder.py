"""The data folder: where the project keeps what the environment does not give it.

The secret key that all processes share, the embedded server's socket and data, the SQLite file, mail,
invoices and reports. One folder, so that a fresh start is one ``rm -r``.
"""

import hashlib
import os
import secrets
import tempfile
from pathlib import Path

# The kernel takes 107 bytes for the path of a Unix socket (103 on macOS); a deep checkout has a longer one.
LONGEST_SOCKET_PATH = 100


def make(folder: Path) -> None:
    """Make the folder, for this user alone: it holds sessions and passwords, and what customers wrote."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def secret_key(folder: Path) -> str:
    """Return the key kept in ``folder``; draw it at the first call.

    Jobs are signed with it, so every process must see the same one: the file appears whole or not at all,
    and of two processes that start together the first wins.
    """
    path = folder / "secret_key"
    if not path.exists():
        make(folder)
        _keep_first(path, secrets.token_urlsafe(64))
    return path.read_text(encoding="ascii").strip()


def _keep_first(path: Path, text: str) -> None:
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret_key-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)


def socket_path(folder: Path) -> Path:
    """Return where the embedded server of this folder listens: inside it, unless that path is too long."""
    path = folder / "valkey.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"priqueue-{os.getuid()}-{digest}" / "valkey.sock"
