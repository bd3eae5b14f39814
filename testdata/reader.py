#!/usr/bin/env python3
"""A second reader of the .bloom format, written from SPEC.md alone.

It shares no code with the library and is meant to be read beside the
specification: numbers in brackets, as in (4.1), are its sections. The file is
held in memory and all that section 5.2 asks of such a reader is checked once,
when it is opened; lookups then trust what they read.

    python3 -B testdata/reader.py FILE [--key HEX] [--identity] [--queries QUERIES]

QUERIES has one item per line in hexadecimal; an empty line is the empty item.
Each gets one line: "no", "maybe" (a candidate that is no record; of a filter
alone, any candidate) or "record N" with the record's ordinal.

The exit status is 1 for a file that is refused and 2 for a request that makes
no sense, such as a query that the file's protocol does not admit.
"""

import argparse
import hashlib
import struct
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

MAGIC = bytes.fromhex("89626c6f6f6d0d0a")
SNAPSHOT, FILTER = 1, 2
SHA256_V2, BLAKE2B_V2, DOC_MEMBERSHIP_V1, ESBLOOM_V1, KEY_INDEX_V1 = 1, 2, 3, 4, 5
HEADER = 256
CHUNK = 1 << 20


class Refused(Exception):
    """The file is not a well-formed one, or not one for this key."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(message)


class Limits(NamedTuple):
    """The limits of a protocol (2)."""

    m: range
    k: int
    seed: int
    item: range
    n: int | None = None
    utf8: bool = False

    def admit(self, item: bytes) -> bool:
        if self.utf8:
            try:
                item.decode()  # Python's UTF-8 is that of RFC 3629
            except UnicodeDecodeError:
                return False
        return len(item) in self.item


LIMITS = {
    SHA256_V2: Limits(range(512, 2**48 + 1, 512), 14, 32, range(2**32)),
    BLAKE2B_V2: Limits(range(512, 2**48 + 1, 512), 14, 32, range(2**32)),
    DOC_MEMBERSHIP_V1: Limits(range(8, 512 + 1), 8, 16, range(64 + 1), n=64),
    ESBLOOM_V1: Limits(range(1, 10_000_000 + 1), 16, 0, range(1_000_000 + 1), utf8=True),
    KEY_INDEX_V1: Limits(range(1, 2**64), 256, 0, range(8, 8 + 1)),
}


def crc32c_table() -> list[int]:
    """Castagnoli's polynomial, for bytes taken least significant bit first."""
    table = list(range(256))
    for _ in range(8):
        table = [x >> 1 ^ (0x82F63B78 if x & 1 else 0) for x in table]
    return table


CRC32C = crc32c_table()


def crc32c(data: bytes) -> int:
    table, crc = CRC32C, 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def blake2b(data: bytes, size: int, **parameters: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=size, **parameters).digest()


def chunks(section: bytes) -> Iterator[bytes]:
    for at in range(0, len(section), CHUNK):
        yield section[at : at + CHUNK]


def section_digest(section: bytes) -> bytes:
    """The digest of a section (4.3)."""
    return sha256(b"".join(map(sha256, chunks(section))))


class Header(NamedTuple):
    """The fields of the header in their order (5.1)."""

    magic: bytes
    version: int
    kind: int
    protocol: int
    k: int
    seed_size: int
    flags: int
    m: int
    n: int
    buckets_size: int
    file_size: int
    seed: bytes
    filter_digest: bytes
    index_digest: bytes
    buckets_digest: bytes
    key_check: bytes
    zeros: bytes
    checksum: int


HEADER_FORM = struct.Struct("<8sHBBHBBQQQQ32s32s32s32s16s60sI")


class Bucket(NamedTuple):
    first: int  # ordinal of the first record, or of the next one there is
    tags: bytes
    records: list[bytes]


class Bloom:
    """An opened file. All is checked when the constructor returns."""

    def __init__(self, data: bytes, key: bytes = b"") -> None:
        self.key = key
        self.read_header(data[:HEADER])
        self.filter, index, checks, buckets = self.cut(data)
        self.check_sections(index, checks, buckets)
        self.buckets: list[Bucket] = []
        if self.header.kind == SNAPSHOT:
            self.read_buckets(index, buckets)
            self.check_filter()

    # Opening.

    def read_header(self, raw: bytes) -> None:
        """Checks the header by itself and against the key (5.1)."""
        require(len(raw) == HEADER, "shorter than a header")
        self.header = h = Header._make(HEADER_FORM.unpack(raw))
        require(h.magic == MAGIC, "not a .bloom file")
        require(h.checksum == crc32c(raw[:252]), "the header's checksum is wrong")
        require(h.version == 1, f"unknown version {h.version}")
        require(h.kind in (SNAPSHOT, FILTER), f"unknown kind {h.kind}")
        require(h.protocol in LIMITS, f"unknown protocol {h.protocol}")
        require(h.flags <= 1, "unknown flags")
        self.limits = limits = LIMITS[h.protocol]
        require(h.m in limits.m, "m is outside the protocol's limits")
        require(1 <= h.k <= limits.k, "k is outside the protocol's limits")
        require(limits.n is None or h.n <= limits.n, "more records than the protocol allows")
        require(h.seed_size <= limits.seed, "the seed is longer than the protocol allows")
        require(not any(h.seed[h.seed_size :] + h.zeros), "unused bytes of the header are not zero")
        if h.kind == FILTER:
            require(h.buckets_size == 0, "a filter alone with buckets")
            require(not any(h.index_digest + h.buckets_digest), "a filter alone with buckets")
        self.seed = h.seed[: h.seed_size]
        self.identity = sha256(raw)
        self.check_key(raw)

    def check_key(self, raw: bytes) -> None:
        """Whether the file was made with this key, or without one (5.1)."""
        h = self.header
        if not h.flags:
            require(not any(h.key_check), "a key check without a key")
            require(not self.key, "a key was given and the file has none")
            return
        require(h.protocol == BLAKE2B_V2, "a key with a protocol that takes none")
        require(len(self.key) > 0, "the file needs its key")
        require(16 <= len(self.key) <= 64, "a key has 16 to 64 bytes")
        # The checksum in the file covers the key check, so the header with
        # zeros in that place has another one, its own.
        blank = raw[:176] + bytes(16) + raw[192:252]
        blank += struct.pack("<I", crc32c(blank))
        check = blake2b(b"bloom2\xff" + sha256(blank), 32, key=self.key)[:16]
        require(check == h.key_check, "the key is not the file's")

    def cut(self, data: bytes) -> list[bytes]:
        """The filter, index, checks and buckets; b"" for what is not there (5)."""
        h = self.header
        filter_size, index_size = (h.m + 7) // 8, 0
        if h.kind == SNAPSHOT:
            self.bucket_count = max(1, (h.n + 7) // 8)
            index_size = 8 * (self.bucket_count + 1)
        checks_size = 4 * sum((size + CHUNK - 1) // CHUNK for size in (filter_size, index_size))

        # The header's numbers may be absurd, so the sum comes before any slice.
        spans, end = [], HEADER
        for size in (filter_size, index_size, checks_size, h.buckets_size):
            begin = (end + 63) // 64 * 64 if size else end
            spans.append((end, begin, begin + size))
            end = begin + size
        require(end == h.file_size == len(data), "the file's length is wrong")
        require(not any(any(data[gap:begin]) for gap, begin, _ in spans), "padding is not zero")
        return [data[begin:end] for _, begin, end in spans]

    def check_sections(self, index: bytes, checks: bytes, buckets: bytes) -> None:
        h = self.header
        require(section_digest(self.filter) == h.filter_digest, "the filter's digest is wrong")
        if h.kind == SNAPSHOT:
            require(section_digest(index) == h.index_digest, "the index's digest is wrong")
            require(section_digest(buckets) == h.buckets_digest, "the buckets' digest is wrong")
        sums = [crc32c(chunk) for section in (self.filter, index) for chunk in chunks(section)]
        require(checks == struct.pack(f"<{len(sums)}I", *sums), "a chunk's check is wrong")
        require(h.m % 8 == 0 or self.filter[-1] >> h.m % 8 == 0, "bits beyond m are set")

    def read_buckets(self, index: bytes, data: bytes) -> None:
        """Reads the buckets; checks that together they are the frozen set (4)."""
        h = self.header
        width = max(1, (h.n.bit_length() + 7) // 8)  # W
        offsets = struct.unpack(f"<{self.bucket_count + 1}Q", index)
        spans = list(zip(offsets, offsets[1:]))
        require(offsets[0] == 0 and offsets[-1] == len(data), "the index does not span the buckets")
        least = 1 + width + 4 + 4
        require(all(end - begin >= least for begin, end in spans), "a bucket without a head")

        fixed = struct.pack("<BHQQB", h.protocol, h.k, h.m, h.n, h.seed_size)
        digests = h.filter_digest + h.index_digest
        salt = sha256(b"bloom2\xfd" + fixed + self.seed + digests)[:8]  # (4.3)

        ordinal, before = 0, (b"", b"")  # less than any digest with its record
        for number, (begin, end) in enumerate(spans):
            salted = salt + struct.pack("<Q", number)
            try:
                bucket = parse_bucket(data[begin:end], width, salted)
                require(bucket.first == ordinal, "does not go on from the one before")
                for record, tag in zip(bucket.records, bucket.tags):
                    require(self.limits.admit(record), "a record that the protocol does not admit")
                    digest = self.set_digest(record)
                    require(self.bucket_of(digest) == number, "a record of another bucket")
                    require(tag == digest[31], "a tag is wrong")
                    require(before < (digest, record), "records are out of order")
                    before = digest, record
            except Refused as error:
                raise Refused(f"bucket {number}: {error}") from None
            ordinal += len(bucket.records)
            self.buckets.append(bucket)
        require(ordinal == h.n, "the number of records is wrong")

    def check_filter(self) -> None:
        """Makes the filter again, from the records."""
        bits = bytearray(len(self.filter))
        for bucket in self.buckets:
            for record in bucket.records:
                for p in self.positions(record):
                    bits[p // 8] |= 1 << p % 8
        require(bits == self.filter, "the filter is not that of the records")

    # The protocols.

    def set_digest(self, item: bytes) -> bytes:
        """What orders the records and gives them a bucket and a tag (4)."""
        protocol = self.header.protocol
        seed = self.seed if protocol in (SHA256_V2, BLAKE2B_V2) else b""
        frame = b"bloom2" + bytes([len(seed)]) + seed + struct.pack(">I", len(item)) + item
        return blake2b(frame, 32, key=self.key) if protocol == BLAKE2B_V2 else sha256(frame)

    def bucket_of(self, digest: bytes) -> int:
        w0 = int.from_bytes(digest[:8], "big")
        return w0 * self.bucket_count >> 64

    def positions(self, item: bytes) -> Iterator[int]:
        """The k positions of an item (2).

        They come one by one, as a query is over at the first bit that is not set.
        """
        protocol, m, k = self.header.protocol, self.header.m, self.header.k
        if protocol in (SHA256_V2, BLAKE2B_V2):
            w0, w1, w2, _ = struct.unpack(">4Q", self.set_digest(item))
            block = w0 * (m // 512) >> 64
            for j in range(k):
                pick = w1 >> 9 * j if j < 7 else w2 >> 9 * (j - 7)
                yield 512 * block + pick % 512
        elif protocol == DOC_MEMBERSHIP_V1:
            start = b"doc-membership-v1\0" + struct.pack(">HBB", m, k, len(self.seed)) + self.seed
            for i in range(k):
                digest = sha256(start + struct.pack(">BH", i, len(item)) + item)
                yield int.from_bytes(digest, "big") % m
        elif protocol == ESBLOOM_V1:
            for i in range(k):
                frame = struct.pack(">HQ", i, len(item)) + item
                digest = blake2b(frame, 8, person=b"esbloom-v1")  # hashlib pads with zeros
                yield int.from_bytes(digest, "big") % m
        else:  # KEY_INDEX_V1
            for i in range(k):
                yield int.from_bytes(blake2b(item + bytes([i]), 8), "little") % m

    # Lookups.

    def candidate(self, item: bytes) -> bool:
        """Whether the filter has all bits of the item."""
        if not self.limits.admit(item):
            raise ValueError("the protocol does not admit the item")
        return all(self.filter[p // 8] >> p % 8 & 1 for p in self.positions(item))

    def ordinal(self, item: bytes) -> int | None:
        """A record's ordinal; None for any other item, and in a filter alone."""
        if not self.buckets:
            return None
        bucket = self.buckets[self.bucket_of(self.set_digest(item))]
        return bucket.first + bucket.records.index(item) if item in bucket.records else None

    def answer(self, item: bytes) -> str:
        if not self.candidate(item):
            return "no"
        ordinal = self.ordinal(item)
        return "maybe" if ordinal is None else f"record {ordinal}"


def parse_bucket(data: bytes, width: int, salted: bytes) -> Bucket:
    """A bucket by itself (4.1).

    The data is at least as long as an empty head; salted is what goes before
    the head into its checksum.
    """
    code, count, at = data[0] & 3, data[0] >> 2, 1
    require(code <= 2, "unknown length code")
    if count == 63:
        count, at = int.from_bytes(data[1:9], "little"), 9
        require(count >= 63, "the count is not in its least form")
    tags = at + width + 4
    lengths = tags + count
    own = lengths + (count << code)
    body = own + 4
    require(body <= len(data), "shorter than its head")

    first = int.from_bytes(data[at : at + width], "little")
    (check,) = struct.unpack_from("<I", data, tags - 4)
    sizes = struct.unpack_from(f"<{count}{'BHI'[code]}", data, lengths)
    (own_check,) = struct.unpack_from("<I", data, own)
    require(own_check == crc32c(salted + data[:own]), "the head's checksum is wrong")
    require(check == crc32c(data[body:]), "the records' checksum is wrong")
    require(body + sum(sizes) == len(data), "the lengths do not add up")
    longest = max(sizes, default=0)
    require(code == (longest >= 2**8) + (longest >= 2**16), "lengths are not in the least form")

    records, at = [], body
    for size in sizes:
        records.append(data[at : at + size])
        at += size
    return Bucket(first, data[tags:lengths], records)


def answers(bloom: Bloom, queries: Path) -> Iterator[str]:
    for number, line in enumerate(queries.read_text("ascii").splitlines(), 1):
        try:
            yield bloom.answer(bytes.fromhex(line))
        except ValueError as error:
            raise ValueError(f"{queries}:{number}: {error}") from None


def main() -> int:
    parser = argparse.ArgumentParser(description="Check a .bloom file and ask it for items.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", type=bytes.fromhex, default=b"", metavar="HEX")
    parser.add_argument("--identity", action="store_true", help="print the file's identity")
    parser.add_argument("--queries", type=Path, help="a file of items in hexadecimal, one a line")
    options = parser.parse_args()
    try:
        bloom = Bloom(options.file.read_bytes(), options.key)
        if options.identity:
            print(bloom.identity.hex())
        elif not options.queries:
            print(f"{options.file}: all that can be checked is right")
        if options.queries:
            for line in answers(bloom, options.queries):
                print(line)
    except Refused as error:
        print(f"{options.file}: refused: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
