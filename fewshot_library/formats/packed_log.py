"""The files within a packed log of Inspect, which Python's zip archives cannot all read."""

import struct
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo
from zlib import crc32

import pyarrow as pa

from showhow.guard.input_bounds import ExpansionBudget, InputBoundExceeded, check_record_size

ZIP_ZSTANDARD = 93
"""The compression of packed logs, which Python's zip archives do not support yet."""
LOCAL_HEADER = struct.Struct("<26xHH")
"""What precedes the data of a zip's member, besides its name and its extra field, whose lengths it ends with."""
MAX_MEMBERS = 200_000
"""The files of a packed log: one a sample, and a few more."""


def check_members(members: list[ZipInfo], packed_bytes: int) -> dict[str, ZipInfo]:
    """The files of an archive by name, none of which has been read; an archive that is no log's is refused."""
    if len(members) > MAX_MEMBERS:
        raise InputBoundExceeded(f"it has {len(members):,} files, more than the bound of {MAX_MEMBERS:,}")
    by_name = {member.filename: member for member in members}
    if len(by_name) < len(members):
        raise BadZipFile("two of its files have the same name")
    budget = ExpansionBudget(packed_bytes)
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        # Files that share their data would expand it again and again.
        if member.header_offset < end:
            raise BadZipFile(f"{member.filename[:80]!r} overlaps another file")
        end = member.header_offset + LOCAL_HEADER.size + member.compress_size
        budget.spend(member.file_size)
    return by_name


def read_member(archive: ZipFile, stream: BinaryIO, member: ZipInfo) -> bytes:
    """The content of a file; BadZipFile and others if it is damaged, InputBoundExceeded if it is too large."""
    check_record_size(member.file_size)
    if member.compress_type != ZIP_ZSTANDARD:
        return archive.read(member)
    stream.seek(member.header_offset)
    name_length, extra_length = LOCAL_HEADER.unpack(stream.read(LOCAL_HEADER.size))
    stream.seek(name_length + extra_length, 1)
    packed = stream.read(member.compress_size)
    data = bytes(pa.Codec("zstd").decompress(packed, decompressed_size=member.file_size, asbytes=True))
    if crc32(data) != member.CRC:
        raise BadZipFile(f"the check sum of {member.filename} is wrong")
    return data
