"""Makes wheels of this folder for pip (PEP 517 and 660) with the standard library alone.

Format: https://packaging.python.org/en/latest/specifications/binary-distribution-format/ (wheel 1.0), read 2026-11-23.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional

HERE = Path(__file__).resolve().parent
NAME, VERSION = "rubato_gpu", "0.1.0"
INFO = f"{NAME}-{VERSION}.dist-info"
TAG = "py3-none-any"
METADATA = f"""Metadata-Version: 2.1
Name: rubato-gpu
Version: {VERSION}
Summary: Sets plans of Rubato on GPUs, measures what they save, reads results as tables
Requires-Python: >=3.9
Provides-Extra: tables
Requires-Dist: pandas; extra == "tables"
"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: {Path(__file__).name}\nRoot-Is-Purelib: true\nTag: {TAG}\n"
COMMANDS = "[console_scripts]\nrubato-py = rubato.__main__:main\n"
OLDEST_IN_A_ZIP = (1980, 1, 1, 0, 0, 0)  # equal sources give equal bytes

Settings = Optional[Mapping[str, Any]]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel into the folder and returns its name."""
    return _write(wheel_directory, {path.relative_to(HERE).as_posix(): path.read_bytes() for path in _sources()})


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    """The same for `pip install -e`: a wheel that only says where this folder is."""
    return _write(wheel_directory, {f"{NAME}.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """What wheels are made from, as a tar file."""
    name, root = f"{NAME}-{VERSION}.tar.gz", f"{NAME}-{VERSION}"
    with tarfile.open(Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in (*_sources(), HERE / "pyproject.toml", Path(__file__)):
            archive.add(path, f"{root}/{path.relative_to(HERE).as_posix()}")
        info = tarfile.TarInfo(f"{root}/PKG-INFO")
        info.size = len(METADATA)
        archive.addfile(info, io.BytesIO(METADATA.encode()))
    return name


def _sources() -> Iterator[Path]:
    return (path for path in sorted((HERE / "rubato").rglob("*")) if path.suffix == ".py" or path.name == "py.typed")


def _write(folder: str, files: dict[str, bytes]) -> str:
    files = {**files, f"{INFO}/METADATA": METADATA.encode(), f"{INFO}/WHEEL": WHEEL.encode(), f"{INFO}/entry_points.txt": COMMANDS.encode()}
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items()) + f"{INFO}/RECORD,,\n"
    name = f"{NAME}-{VERSION}-{TAG}.whl"
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in {**files, f"{INFO}/RECORD": record.encode()}.items():
            entry = zipfile.ZipInfo(path, OLDEST_IN_A_ZIP)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
