"""What a world contains, as one number that does not depend on the order of its sources."""

import hashlib

_SIZE = 1 << 256


class Fingerprint:
    """The sum of the SHA-256 of every part: equal for equal parts in any order, in constant memory."""

    def __init__(self) -> None:
        self._sum = 0
        self.count = 0

    def add(self, part: str) -> None:
        """Count one part in."""
        self._sum = (self._sum + int.from_bytes(hashlib.sha256(part.encode()).digest())) % _SIZE
        self.count += 1

    def digest(self) -> str:
        """The fingerprint in hexadecimal."""
        return hashlib.sha256(f"{self.count} {self._sum:064x}".encode()).hexdigest()
