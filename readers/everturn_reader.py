"""Read the files in an everturn archive or bundle without everturn. The format is described in docs/format.md.

    python everturn_reader.py list ARCHIVE
    python everturn_reader.py cat ARCHIVE PATH [VERSION]     the bytes of a file, to standard output
    python everturn_reader.py verify ARCHIVE                 every byte against its digest

ARCHIVE is an `archive.db` (SQLite) or a bundle (zip). Only the standard library is used; an archive.db also needs Zstandard:
Python 3.14 has it, older versions need the package `backports.zstd`.
"""

import hashlib
import json
import sqlite3
import sys
import zipfile


def unpack_chunk(stored):
    """Return the bytes of a stored chunk: its first byte says how they are packed."""
    if stored[:1] == b"\x00":
        return stored[1:]
    if stored[:1] != b"\x01":
        raise ValueError("a chunk is packed in an unknown way")
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    return zstd.decompress(stored[1:])


class Archive:
    """The raw layer of an `archive.db`."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def versions(self):
        """Yield (path, version number, size, id) of everything that is stored."""
        yield from self.db.execute(
            "SELECT f.path, v.number, v.size, v.id FROM source_file f JOIN version v ON v.source = f.id "
            "ORDER BY f.machine, f.path, v.number"
        )

    def chunks(self, version):
        """Yield (SHA-256, bytes) of the chunks of a version, in order."""
        query = "SELECT c.digest, b.data FROM chunk c JOIN blob b ON b.digest = c.digest WHERE c.version = ? ORDER BY c.start"
        for digest, data in self.db.execute(query, (version,)):
            yield digest.hex(), unpack_chunk(data)


class Bundle:
    """A bundle: a zip file with a manifest."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.manifest = json.loads(self.zip.read("manifest.json"))
        if self.manifest["format"] != "everturn-bundle@1":
            raise ValueError(f"unknown format {self.manifest['format']}")

    def versions(self):
        """Yield (path, version number, size, version) of everything that is stored."""
        for file in self.manifest["files"]:
            for version in file["versions"]:
                yield file["path"], version["number"], version["size"], version

    def chunks(self, version):
        """Yield (SHA-256, bytes) of the chunks of a version, in order."""
        for chunk in version["chunks"]:
            yield chunk["sha256"], self.zip.read(f"chunks/{chunk['sha256']}")


def open_archive(path):
    """Open an archive or a bundle."""
    return Bundle(path) if zipfile.is_zipfile(path) else Archive(path)


def read(archive, path, number=None):
    """Return the bytes of a file: of its newest version, or of the one with this number."""
    found = [one for one in archive.versions() if one[0] == path and number in (None, one[1])]
    if not found:
        raise KeyError(path)
    return b"".join(data for _, data in archive.chunks(max(found, key=lambda one: one[1])[3]))


def verify(archive):
    """Return the problems: chunks that differ from their digest, versions of the wrong size."""
    problems = []
    for path, number, size, version in archive.versions():
        length = 0
        for digest, data in archive.chunks(version):
            length += len(data)
            if hashlib.sha256(data).hexdigest() != digest:
                problems.append(f"{path} (version {number}): chunk {digest} is damaged")
        if length != size:
            problems.append(f"{path} (version {number}): {length} bytes instead of {size}")
    return problems


def main(arguments):
    """Run one command; return the exit code."""
    if len(arguments) < 2 or arguments[0] not in ("list", "cat", "verify"):
        print(__doc__, file=sys.stderr)
        return 2
    archive = open_archive(arguments[1])
    if arguments[0] == "cat":
        sys.stdout.buffer.write(read(archive, arguments[2], int(arguments[3]) if len(arguments) > 3 else None))
        return 0
    if arguments[0] == "list":
        for path, number, size, _ in archive.versions():
            print(f"{size}\t{number}\t{path}")
        return 0
    problems = verify(archive)
    print("\n".join(problems) or "all bytes are as they were stored")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
