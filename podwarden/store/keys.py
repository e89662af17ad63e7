"""Encryption at rest: AES-256-GCM with a key file that only its owner may read.

The name of what is encrypted is bound to it (associated data): a value copied to another row does not decrypt.
Each key has an id, stored beside what it encrypted; the first key of the file encrypts, all decrypt, so a new
first line rotates the key.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from podwarden.errors import SetupFailed, Unavailable

_LINE = re.compile(r"([0-9a-f]{8}) ([A-Za-z0-9+/=]+)")
_NONCE = 12  # bytes


@dataclass(frozen=True, slots=True)
class Sealed:
    key_id: str
    data: bytes = field(repr=False)


class Keyring:
    def __init__(self, file: Path, keys: Mapping[str, AESGCM], current: str) -> None:
        self._file = file
        self._keys = keys
        self._current = current

    def __repr__(self) -> str:
        return f"Keyring({self._file}, {len(self._keys)} keys)"

    def seal(self, name: str, text: str) -> Sealed:
        """name: what the value is, in words that never change, such as `secret/hf-token`."""
        nonce = secrets.token_bytes(_NONCE)
        data = self._keys[self._current].encrypt(nonce, text.encode(), name.encode())
        return Sealed(self._current, nonce + data)

    def unseal(self, name: str, sealed: Sealed) -> str:
        """Unavailable: its key is not in the file, or the stored value is damaged."""
        key = self._keys.get(sealed.key_id)
        if key is None:
            raise Unavailable(
                f"The stored {name} was encrypted with key {sealed.key_id}, which is not in {self._file}: put that key file back "
                "from a backup, or enter the value again."
            )
        try:
            clear = key.decrypt(sealed.data[:_NONCE], sealed.data[_NONCE:], name.encode())
        except (InvalidTag, ValueError) as error:
            raise Unavailable(
                f"The stored {name} does not decrypt with key {sealed.key_id} of {self._file}: the stored value or the key file "
                "is damaged. Put both back from one backup, or enter the value again."
            ) from error
        return clear.decode()


def load_keyring(file: Path, used: Collection[str]) -> Keyring:
    """Reads the key file, or makes it at first use. used: ids of the keys that something stored needs.

    An empty file asks for a new key on purpose. SetupFailed: readable by others, lost, unreadable, damaged.
    """
    try:
        text = _read(file)
        if text is None and used:
            raise SetupFailed(
                f"The key file {file} is missing, and {len(used)} key(s) of it encrypted what the database holds: put it "
                f"back from a backup. If it is lost for good, create it empty (install -m 600 /dev/null {file}): a new "
                "key is made, and kubeconfigs and secrets must be entered again."
            )
        if text is None or not text.strip():
            _create(file, replace=text is not None)
            text = _read(file) or ""
    except OSError as error:
        raise SetupFailed(
            f"The key file {file} cannot be used: {error.strerror}. Give a data folder that this user may write."
        ) from error
    keys = _parse(file, text)
    return Keyring(file, keys, next(iter(keys)))


def _read(file: Path) -> str | None:
    try:
        handle = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, encoding="ascii", errors="replace") as stream:
        mode = os.fstat(handle).st_mode
        if mode & 0o077:
            raise SetupFailed(
                f"The key file {file} may be read by others (mode {mode & 0o777:o}): run chmod 600 {file}."
            )
        return stream.read()


def _create(file: Path, *, replace: bool) -> None:
    """Whole or not at all, and never over the key of another process that was quicker."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = base64.b64encode(AESGCM.generate_key(bit_length=256)).decode()
    handle, temporary = tempfile.mkstemp(prefix=".secrets-", dir=file.parent)  # 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(f"{secrets.token_hex(4)} {key}\n")
            stream.flush()
            os.fsync(stream.fileno())
        if replace:
            Path(temporary).replace(file)
        else:
            _link(temporary, file)
        _sync_folder(file.parent)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _link(temporary: str, file: Path) -> None:
    try:
        os.link(temporary, file)
    except FileExistsError:
        return  # another process made one at the same moment: that one counts


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _parse(file: Path, text: str) -> dict[str, AESGCM]:
    keys: dict[str, AESGCM] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        try:
            key = base64.b64decode(match[2] if match else "", validate=True)
            keys[match[1] if match else ""] = AESGCM(key)  # refuses a length that is none of a key
        except ValueError:
            raise SetupFailed(
                f"The key file {file} is damaged in line {number}: put it back from a backup."
            ) from None
    if not keys:
        raise SetupFailed(f"The key file {file} holds no key: put it back from a backup.")
    return keys
