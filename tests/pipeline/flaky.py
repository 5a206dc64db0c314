"""A store whose connections break at chosen bytes, as often as is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

__all__ = ["Fault", "Flaky"]

Fault = Callable[[], Exception] | Literal["short"]


class _File(AbstractBufferedFile):  # type: ignore[misc]  # fsspec has no types
    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.fetch(self.path, start, min(end, self.size))  # type: ignore[no-any-return]


class Flaky(AbstractFileSystem):  # type: ignore[misc]
    """Files in memory, asked for in small ranges. All instances, whatever their options, are one store.

    Each of `faults` strikes the requests that have its byte in their range, as often as its number says; those of
    `open_faults` whoever opens a file, those of `look_faults` whoever asks what is there.
    """

    protocol = "flaky"
    cachable = False
    files: ClassVar[dict[str, bytes]] = {}
    versions: ClassVar[dict[str, int]] = {}
    faults: ClassVar[list[tuple[str, int, int, Fault]]] = []
    open_faults: ClassVar[list[Exception]] = []
    look_faults: ClassVar[list[Exception]] = []
    struck: ClassVar[int] = 0
    asked: ClassVar[list[tuple[str, int, int]]] = []
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, cache_type: str = "readahead", **options: Any) -> None:
        super().__init__(**options)
        self._cache_type = cache_type

    @classmethod
    def clear(cls) -> None:
        for kept in (cls.files, cls.versions, cls.faults, cls.open_faults, cls.look_faults, cls.asked):
            kept.clear()
        cls.struck = 0

    @classmethod
    def upload(cls, folder: Path) -> None:
        for file in folder.rglob("*"):
            if file.is_file():
                cls.put(f"data/{file.relative_to(folder)}", file.read_bytes())

    @classmethod
    def put(cls, path: str, content: bytes) -> None:
        cls.files[path] = content
        cls.versions[path] = cls.versions.get(path, 0) + 1

    @classmethod
    def strike(cls, fault: Fault, *, times: int = 1) -> None:
        """Break requests at the first byte, the last, and some between, of every file."""
        for path, content in cls.files.items():
            size = len(content)
            cls.faults += [(path, at, times, fault) for at in sorted({0, size // 3, size // 2, size - 1})]

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        path = self._strip_protocol(path).strip("/")
        self._fail(self.look_faults)
        found = [
            {"name": name, "size": len(content), "type": "file", "ETag": str(self.versions[name])}
            for name, content in self.files.items()
            if name == path or name.startswith(f"{path}/")
        ]
        if not found:
            raise FileNotFoundError(path)
        return found if detail else [entry["name"] for entry in found]

    def _open(self, path: str, mode: str = "rb", **options: Any) -> _File:
        self._fail(self.open_faults)
        if path not in self.files:
            raise FileNotFoundError(path)
        return _File(self, path, block_size=100, cache_type=self._cache_type, size=len(self.files[path]))

    def fetch(self, path: str, start: int, end: int) -> bytes:
        found = self._fault(path, start, end)
        if found is None:
            return self.files[path][start:end]
        at, fault = found
        if fault == "short":
            return self.files[path][start:at]
        raise fault()

    def _fault(self, path: str, start: int, end: int) -> tuple[int, Fault] | None:
        with self._lock:
            self.asked.append((path, start, end))
            for number, (name, at, times, fault) in enumerate(self.faults):
                if name == path and start <= at < end and times:
                    self.faults[number] = (name, at, times - 1, fault)
                    type(self).struck += 1
                    return at, fault
        return None

    def _fail(self, errors: list[Exception]) -> None:
        with self._lock:
            if errors:
                type(self).struck += 1
                raise errors.pop()
