"""Test vectors for the Bloom filter protocols, for any language.

    python3 -B vectors.py > vectors.json
    python3 -B vectors.py --check vectors.json

This program is an implementation of its own: it shares no code with the
library and needs only Python 3.11.  Its output is the same everywhere.

Byte strings are lower-case hexadecimal.  Integers that may pass 2^53 (m, n,
positions, w3, shards) are decimal strings.  Rates are hexadecimal floats as
C's %a and Python's float.hex write them.  A key of null is no key at all.
An item is {"hex": bytes} or {"repeat": unit, "count": times}.

positions  one item under one configuration: each frame (the exact bytes that
           are hashed; key and personalisation are no part of it), its digest,
           and the k positions in order, repeats kept.  The v2 protocols hash
           one frame an item, the others one for each position.  "frames" is
           null for items longer than 4096 bytes.
snapshots  whole filters: records in the order given, repeats included, the
           packed bits (bit p is bit p mod 8, least significant first, of byte
           p // 8), how many are one, and what lookups answer.  "exact" says
           whether the exact set had to be asked: just when "maybe" is true.
shards     floor(w3 * shards / 2^64), w3 being the last word of a v2 digest.
rates      the false-positive rate the v2 model gives for n records, to the
           last bit.
sizing     what n records at a rate resolve to.  "hashes_asked" 0 leaves k
           free.  m and k are null where the request is refused.
refused    inputs for which computing positions must fail, and why; each would
           be accepted if that one thing were put right.  Two limits are not
           shown: m = 2^64, which has no 64-bit form, and the v2 items of 2^32
           bytes and more.
"""

import argparse
import json
import math
import sys
from functools import cache, lru_cache
from hashlib import blake2b, sha256, shake_256
from itertools import product
from pathlib import Path
from struct import unpack
from typing import NamedTuple

SHA256 = "sha256-v2"
BLAKE2B = "blake2b-v2"
DOC = "doc-membership-v1"
ES = "esbloom-v1"
KEY_INDEX = "key-index-v1"
V2 = (SHA256, BLAKE2B)

BLOCK = 512  # bits of a v2 block
LONGEST_SHOWN = 4096  # frames of longer items are left out


class Refused(ValueError):
    """The input lies outside the protocol's limits."""


class Config(NamedTuple):
    protocol: str
    m: int
    k: int
    seed: bytes = b""
    key: bytes | None = None

    def describe(self):
        return {
            "protocol": self.protocol,
            "m": str(self.m),
            "k": self.k,
            "seed": self.seed.hex(),
            "key": None if self.key is None else self.key.hex(),
        }


# The protocols ------------------------------------------------------------


class Limits(NamedTuple):
    """What a protocol accepts: m and k, and lengths in bytes of the rest."""

    m: range
    k: range
    item: range
    seed: range = range(1)
    key: range = range(0)  # no key is taken, not even an empty one


V2_LIMITS = Limits(
    m=range(BLOCK, 2**48 + 1, BLOCK),
    k=range(1, 15),
    item=range(2**32),
    seed=range(33),
)
LIMITS = {
    SHA256: V2_LIMITS,
    BLAKE2B: V2_LIMITS._replace(key=range(16, 65)),
    DOC: Limits(range(8, 513), range(1, 9), range(65), range(17)),
    ES: Limits(range(1, 10_000_001), range(1, 17), range(1_000_001)),
    KEY_INDEX: Limits(range(1, 2**64), range(1, 257), range(8, 9)),
}


def check(config, item):
    """Refuse what the protocol does not accept."""
    limits = LIMITS.get(config.protocol)
    if limits is None:
        raise Refused("unknown protocol")
    if config.m not in limits.m:
        raise Refused("m")
    if config.k not in limits.k:
        raise Refused("k")
    if len(config.seed) not in limits.seed:
        raise Refused("seed")
    if config.key is not None and len(config.key) not in limits.key:
        raise Refused("key")
    if len(item) not in limits.item:
        raise Refused("item")
    if config.protocol == ES:
        try:
            item.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused("item is not UTF-8") from None


def big_endian(value, size):
    return value.to_bytes(size, "big")


def frames_of(config, item):
    """The bytes to hash: one frame for v2, else one for each position."""
    protocol, m, k, seed, _ = config
    if protocol in V2:
        head = b"bloom2" + big_endian(len(seed), 1) + seed
        return [head + big_endian(len(item), 4) + item]
    if protocol == DOC:
        head = b"doc-membership-v1\0" + big_endian(m, 2) + big_endian(k, 1)
        head += big_endian(len(seed), 1) + seed
        tail = big_endian(len(item), 2) + item
        return [head + big_endian(i, 1) + tail for i in range(k)]
    if protocol == ES:
        tail = big_endian(len(item), 8) + item
        return [big_endian(i, 2) + tail for i in range(k)]
    return [item + big_endian(i, 1) for i in range(k)]


def digest_of(config, frame):
    if config.protocol in (SHA256, DOC):
        return sha256(frame).digest()
    if config.protocol == BLAKE2B:
        return blake2b(frame, digest_size=32, key=config.key or b"").digest()
    person = b"esbloom-v1" if config.protocol == ES else b""
    return blake2b(frame, digest_size=8, person=person).digest()


def positions_of(config, digests):
    protocol, m, k, _, _ = config
    if protocol in V2:
        w0, w1, w2, _ = unpack(">4Q", digests[0])
        block = w0 * (m // BLOCK) >> 64
        # Seven 9-bit picks from each word; its highest bit stays unused.
        picks = [w >> 9 * j & 511 for w in (w1, w2) for j in range(7)]
        return [BLOCK * block + pick for pick in picks[:k]]
    order = "little" if protocol == KEY_INDEX else "big"
    return [int.from_bytes(digest, order) % m for digest in digests]


def trace(config, item):
    """Frames, digests and positions of an item the protocol accepts."""
    check(config, item)
    frames = frames_of(config, item)
    digests = [digest_of(config, frame) for frame in frames]
    return frames, digests, positions_of(config, digests)


# Sizing, v2 ---------------------------------------------------------------
#
# Every double below is rounded once an operation, in the order written, so
# the results are equal on every machine; nothing may be fused or reordered.
# The built-in sum is avoided: from Python 3.12 on it compensates for rounding.


@cache
def block_rates(k):
    """False-positive rates of one block holding 0, 1, 2, ... items.

    The list ends where further items change nothing any more.
    """
    # c[r]: the chance that a query's k throws name exactly r distinct bits.
    c = [1.0] + [0.0] * k
    for _ in range(k):
        for r in range(k, 0, -1):
            c[r] = c[r] * (r / 512) + c[r - 1] * ((513 - r) / 512)
        c[0] = 0.0

    # q[r]: the chance that r given bits are all set.  It never falls, so the
    # first item that leaves q as it was is the last that matters.
    q, before = [1.0] + [0.0] * k, None
    rates = []
    while q != before:
        rate = 0.0
        for r in range(1, k + 1):
            rate += c[r] * q[r]
        rates.append(rate)
        before = q.copy()
        for _ in range(k):
            for r in range(k, 0, -1):
                q[r] = q[r] * ((512 - r) / 512) + q[r - 1] * (r / 512)
    return rates


@lru_cache(maxsize=32)
def weights(n, blocks):
    """Pairs (j, weight): how likely it is, relative to the likeliest number,
    that a block holds j of n items; from the mode up, then down from it.

    Binomial up to 2^16 items, Poisson above.
    """
    if n <= 2**16:
        mode = (n + 1) // blocks
        others = float(blocks - 1)

        def up(w, j):
            return w * float(n - j) / (float(j + 1) * others)

        def down(w, j):
            return w * (float(j) * others) / float(n - j + 1)
    else:
        mode = n // blocks

        def up(w, j):
            return w * float(n) / (float(j + 1) * float(blocks))

        def down(w, j):
            return w * (float(j) * float(blocks)) / float(n)

    pairs = [(mode, 1.0)]
    j, w = mode + 1, up(1.0, mode)
    while w >= 2.0**-200:  # in the binomial case 0 beyond j = n
        pairs.append((j, w))
        j, w = j + 1, up(w, j)
    j, w = mode, 1.0
    while j > 0:
        j, w = j - 1, down(w, j)
        if w < 2.0**-200:
            break
        pairs.append((j, w))
    return pairs


@cache
def model(n, blocks, k):
    """The false-positive rate expected of n records in so many blocks."""
    if n == 0:
        return 0.0
    if n // blocks > 2**15:
        return 1.0
    rates = block_rates(k)
    last = len(rates) - 1
    if blocks == 1:
        return rates[min(n, last)]
    total = rate = 0.0
    for j, w in weights(n, blocks):
        total += w
        rate += w * rates[min(j, last)]
    return rate / total


def size_v2(protocol, n, rate, asked):
    """The least m that keeps to the rate, with the best k (or the one asked).

    The model falls as blocks are added, so the least is found by bisection.
    """
    if n == 0:
        return BLOCK, asked or 1
    choices = [asked] if asked else LIMITS[protocol].k

    def enough(blocks):
        return any(model(n, blocks, k) <= rate for k in choices)

    low, high = 1, 2**39
    if n > 2**16:  # Poisson weights must not give fewer bits to more records
        low = size_v2(protocol, 2**16, rate, asked)[0] // BLOCK
    if not enough(high):
        raise Refused("out of reach")
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    # min returns the first of equals: the smaller k.
    return BLOCK * low, min(choices, key=lambda k: model(n, low, k))


# Sizing, v1 ---------------------------------------------------------------

LN2 = float.fromhex("0x1.62e42fefa39efp-1")
SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")


def artanh(s):
    """The series of the inverse hyperbolic tangent, to the 29th power."""
    z = s * s
    t = 1.0 / 29.0
    for d in range(27, 0, -2):
        t = t * z + 1.0 / d
    return s * t


def ln(x):
    """The logarithm, by a series of its own: math.log differs by machine."""
    f, e = math.frexp(x)
    if f < SQRT_HALF:
        f, e = f * 2.0, e - 1
    return float(e) * LN2 + 2.0 * artanh((f - 1.0) / (f + 1.0))


def exp(x):
    """The exponential of x <= 0, for the same reason."""
    if x < -700.0:
        return 0.0
    a = math.floor(x / LN2 + 0.5)
    r = x - a * LN2
    t = 1.0
    for d in range(20, 0, -1):
        t = 1.0 + t * r / d
    return math.ldexp(t, a)


def bits_for(n, rate, k):
    """The classic m for a given k; 0 where any m will do."""
    t = exp(ln(rate) / k)
    if n == 0 or t >= 1.0:
        return 0
    # ln(1 - t), which cancels nothing where t is small.
    y = ln(1.0 - t) if t > 0.5 else -2.0 * artanh(t / (2.0 - t))
    if y == 0.0:
        raise Refused("out of reach")
    return math.ceil(-(float(k) * float(n)) / y)


def size_v1(protocol, n, rate, asked):
    """The classic formulas, within the protocol's limits."""
    limits = LIMITS[protocol]
    least, most, most_k = limits.m[0], limits.m[-1], limits.k[-1]
    if protocol == DOC and n > 64:
        raise Refused("too many records")
    if asked:
        k = asked
        m = max(least, bits_for(n, rate, k))
    elif n == 0:
        m, k = least, 1
    elif math.floor(-ln(rate) / LN2 + 0.5) > most_k:
        k = most_k  # fewer hashes than are best need more bits
        m = max(least, bits_for(n, rate, k))
    else:
        m = max(least, math.ceil(-float(n) * ln(rate) / (LN2 * LN2)))
        k = max(1, math.floor(float(m) / float(n) * LN2 + 0.5))
        k = min(k, most_k)
    if m > most:
        raise Refused("out of reach")
    return m, k


def size(protocol, n, rate, asked):
    """The m and k of n records at a rate."""
    if n > 2**40:
        raise Refused("more records than can be sized for")
    return (size_v2 if protocol in V2 else size_v1)(protocol, n, rate, asked)


# Inputs -------------------------------------------------------------------


def noise(label, size):
    """Bytes that look random and are the same everywhere."""
    return shake_256(label.encode()).digest(size)


def text(label, size):
    """UTF-8 of exactly so many bytes, of characters of every width."""
    planes = ((0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0x10000, 0x110000))
    draws = unpack(f">{size}I", noise(label, 4 * size))
    out = b""
    for draw in draws:
        low, high = planes[draw % min(4, size - len(out))]
        out += chr(low + (draw >> 2) % (high - low)).encode()
        if len(out) == size:
            break
    return out


def little_endian(value):
    """The form of an item of key-index-v1."""
    return value.to_bytes(8, "little")


# For each protocol a usual configuration and item, which the lists below vary
# in one thing at a time.  No m is a power of two: reducing to such a one would
# look at few bits of the digest only.
USUAL = {
    SHA256: (Config(SHA256, BLOCK * 1_000_003, 7, b"seed"), b"item"),
    BLAKE2B: (Config(BLAKE2B, BLOCK * 1_000_003, 7, b"seed"), b"item"),
    DOC: (Config(DOC, 509, 2, b"lab"), b"doc-00"),
    ES: (Config(ES, 9_999_991, 2), b"item:0"),
    KEY_INDEX: (Config(KEY_INDEX, 2**61 - 1, 3), little_endian(1)),
}

LENGTHS = (*range(71), *range(108, 131), 200, 255, 256, 257, 1000)
V2_SIZES = (
    *(BLOCK * b for b in (1, 2, 3, 4, 5, 7, 8, 1000, 2**20 - 1)),
    *(2**p + d for p in (31, 32, 40) for d in (-BLOCK, 0, BLOCK)),
    2**48 - BLOCK,
    2**48,
)
SIZES = {
    SHA256: V2_SIZES,
    BLAKE2B: V2_SIZES,
    DOC: (8, 9, 10, 15, 16, 17, 31, 32, 63, 64, 65, 127, 128, 255, 256, 257,
          509, 511, 512),
    ES: (1, 2, 3, 7, 8, 9, 61, 64, 1000, 1023, 65536, 65537, 2**20, 2**23,
         9_999_991, 9_999_999, 10_000_000),
    KEY_INDEX: (1, 2, 3, 7, 8, 9, 1000, 2**31, 2**32 - 1, 2**32, 2**32 + 1,
                2**48, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1),
}
CONTENTS = (
    b"\0",
    b"\0\0",
    b"a\0",
    b"\0a",
    b"a\0b",
    b"\xff",
    b"\xff" * 44,
    b"\xc3(",  # invalid UTF-8
    b"ok\xed\xa0\x80",  # a surrogate
    "\u00e9".encode(),  # é as one character
    "e\u0301".encode(),  # é as two
    "\u0430a".encode(),  # look alike
    "\u00df \u6f22\u5b57 \ud55c\uae00 \U0001f600".encode(),
    "\ud7ff\ue000\ufffe\uffff\U00010000\U0010ffff".encode(),  # limits
    "\ufeffitem".encode(),  # a byte order mark is a character like others
    *(little_endian(v) for v in (0, 1, 2, 3, 255, 2**32, 2**63, 2**64 - 1)),
)
LONG = (
    text("unit of 255", 255) * 257,
    text("unit of 256", 256) * 256,
    noise("unit of 255", 255) * 257,
    noise("unit of 256", 256) * 256,
)


def accepted(config, item):
    try:
        check(config, item)
    except Refused:
        return False
    return True


def position_inputs(protocol):
    """Pairs (configuration, item), varying one thing at a time, then all."""
    limits = LIMITS[protocol]
    config, item = USUAL[protocol]
    content = text if protocol == ES else noise

    for size in LENGTHS:
        if size in limits.item:
            yield config, content(f"length {size}", size)
    for m in SIZES[protocol]:
        yield config._replace(m=m), item
    # Every k, but of key-index-v1, which hashes up to 256 times, a few.
    for k in (1, 2, 7, 10, 255, 256) if protocol == KEY_INDEX else limits.k:
        yield config._replace(k=k), item
    for size in limits.seed:
        yield config._replace(seed=noise(f"seed {size}", size)), item
    for size in (16, 17, 32, 63, 64):
        if size in limits.key:
            keyed = config._replace(key=noise(f"key {size}", size))
            yield keyed, item
            for length in (0, 117, 118):  # around BLAKE2b's block
                yield keyed._replace(seed=b""), noise("keyed", length)
    for other in CONTENTS:
        if accepted(config, other):
            yield config, other
    for number in range(36 if protocol == KEY_INDEX else 20):
        yield mixed(protocol, content, number)
    for other in LONG:
        if accepted(config, other):
            yield config, other
    if protocol == ES:  # the longest item there is
        yield config, "\u00e9".encode() * 500_000


def mixed(protocol, content, number):
    """A configuration and an item drawn from all that the protocol takes."""
    limits = LIMITS[protocol]
    label = f"mixed {number}"
    draw, *small = unpack(">Q4H", noise(label, 16))
    # m of all magnitudes: the draw loses one more bit each time.
    span = (limits.m.stop - limits.m.start) // limits.m.step
    size = draw % span >> number % span.bit_length()
    most_k = min(16, limits.k[-1])
    seed_size = small[1] % len(limits.seed)
    key = None
    if limits.key and number % 2:
        key = noise(label + " key", limits.key[small[2] % len(limits.key)])
    config = Config(
        protocol,
        m=limits.m.start + limits.m.step * size,
        k=1 + small[0] % most_k,
        seed=noise(label + " seed", seed_size),
        key=key,
    )
    lengths = limits.item[:200]
    item_size = lengths[small[3] % len(lengths)]
    return config, content(label + " item", item_size)


def snapshot_inputs(protocol):
    """Triples (configuration, records, items to look up besides them)."""
    if protocol == DOC:
        config = Config(DOC, 16, 3, b"lab")
        universe = [b"doc-%02d" % i for i in range(64)]
        full = [bytes([i]) * (i + 1) for i in range(64)]
        words = [b"", b"\0", b"a", b"a\0", b"\xff", b"A", b"00", b"\xc3\xa9"]
        yield config, [], universe[:8]
        yield config, [b""], [b"\0", *universe[:20]]
        yield config, universe[:4], universe
        yield config, universe[3::-1] + universe[:4], universe[:20]
        yield config._replace(m=9, k=2, seed=b"S"), words[::-1], universe[:30]
        yield config._replace(m=8, k=8), universe, words  # saturated
        yield config._replace(m=512, k=8, seed=b"s" * 16), full, words
    elif protocol == ES:
        config = Config(ES, 2048, 4)
        items = [b"item:%d" % i for i in range(200)]
        probes = [b"probe:%d" % i for i in range(300)]
        words = [text(f"word {i}", i) for i in range(40)]
        yield config, [], probes[:8]
        yield config, [b""], [b"\0", *probes[:8]]
        yield config, items, probes
        yield config._replace(m=1, k=1), items[:1], probes[:8]  # saturated
        yield config._replace(m=61, k=16), items[:40], probes[:40]
        yield config._replace(m=301, k=3), words[::-1] + words, probes[:60]
    elif protocol == KEY_INDEX:
        config = Config(KEY_INDEX, 64, 3)
        keys = [little_endian(v) for v in range(100)]
        large = [noise(f"key {i}", 8) for i in range(40)]
        yield config, [], keys[:8]
        yield config, keys[:1], keys[:20]
        yield config, [keys[1], keys[3]], keys
        yield config._replace(m=1), keys[7:8], large[:8]  # saturated
        yield config._replace(m=8191, k=256), large[:4], keys[:40]
        yield config._replace(m=499, k=7), keys[79::-1] + keys[:40], keys
        yield config._replace(m=333), large + large[::-1], keys[:60]
    else:
        yield from v2_snapshot_inputs(protocol)


def v2_snapshot_inputs(protocol):
    records = [b"record-%d" % i for i in range(512)]
    probes = [b"probe-%d" % i for i in range(100)]
    raw = [noise(f"raw {i}", i) for i in range(48)]
    twice = records[63::-1] + records[20:50]
    seeded = {"seed": b"snapshot"}
    if protocol == BLAKE2B:
        seeded["key"] = noise("snapshot key", 32)

    def blocks(number, k, **more):
        return Config(protocol, BLOCK * number, k, **more)

    yield blocks(1, 7), [], probes[:8]
    yield blocks(1, 7), [b""], [b"\0", *probes[:8]]
    yield blocks(1, 4), twice, probes
    yield blocks(1, 14), records[:400], probes[:8]  # saturated
    yield blocks(2, 6), records[7::-1] * 2, probes[:20]
    yield blocks(2, 6, **seeded), records[149::-1] + records[:9], probes
    yield blocks(3, 2, **seeded), raw[::-1] + raw[:5], probes[:50]
    yield blocks(4, 14, **seeded), records[31::-1] * 2, probes[:40]
    yield blocks(8, 3), records[::-1], probes[:50]
    yield blocks(512, 7, **seeded), records[7::-1] * 2, probes[:20]


# The lists ----------------------------------------------------------------


def describe_item(item):
    """Long items that repeat a unit are told by the shortest such unit."""
    if len(item) > 64:
        # An item meets itself in its double first after one such unit.
        size = (item + item).find(item, 1)
        if size < len(item):
            unit = item[:size].hex()
            return {"repeat": unit, "count": len(item) // size}
    return {"hex": item.hex()}


def position_vectors():
    for protocol in LIMITS:
        inputs = dict.fromkeys(position_inputs(protocol))  # each once
        for config, item in inputs:
            frames, digests, positions = trace(config, item)
            shown = len(item) <= LONGEST_SHOWN
            yield {
                **config.describe(),
                "item": describe_item(item),
                "frames": [f.hex() for f in frames] if shown else None,
                "digests": [d.hex() for d in digests],
                "positions": [str(p) for p in positions],
            }


def snapshot_vectors():
    for protocol in LIMITS:
        for config, records, probes in snapshot_inputs(protocol):
            yield snapshot_vector(config, records, probes)


def snapshot_vector(config, records, probes):
    packed = bytearray((config.m + 7) // 8)
    for record in records:
        for p in trace(config, record)[2]:
            packed[p // 8] |= 1 << p % 8
    queries = []
    # Each item once, in order; of very many records the first will do.
    for item in dict.fromkeys([*records[:100], *probes]):
        positions = trace(config, item)[2]
        maybe = all(packed[p // 8] >> p % 8 & 1 for p in positions)
        queries.append({
            "item": item.hex(),
            "maybe": maybe,
            "exact": maybe,
            "duplicate": maybe and item in records,
        })
    return {
        **config.describe(),
        "records": [record.hex() for record in records],
        "packed": packed.hex(),
        "ones": sum(byte.bit_count() for byte in packed),
        "queries": queries,
    }


def shard_vectors():
    words = {0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1}
    words.update(unpack(">8Q", noise("w3", 64)))
    counts = (1, 2, 3, 7, 10, 256, 1000, 65535, 65536, 2**31, 2**32 - 1, 2**32)
    for shards in counts:
        edges = set()
        for shard in (1, shards // 2, shards - 1):
            if 0 < shard < shards:
                first = -(-(shard << 64) // shards)  # rounded up
                edges |= {first - 1, first}
        for w3 in sorted(words | edges):
            yield {
                "w3": str(w3),
                "shards": str(shards),
                "shard": str(w3 * shards >> 64),
            }


def rate_vectors():
    numbers = (1, 2, 5, 10, 64, 100, 1000, 65535, 65536, 65537, 10**6, 2**40)
    pairs = [(1, 0), (2**39, 0), (2**39, 1), (2**39, 2**40)]
    pairs += [
        (blocks, n)
        for blocks in (1, 2, 3, 10, 1000, 2**20)
        for n in numbers
        if n // blocks <= 2**15
    ]
    # A block of more than 2^15 items counts as full.
    pairs += [(1, 2**15), (1, 2**15 + 1), (1, 2**40)]
    pairs += [(2, 2**16 + 2), (2**25, 2**40), (2**25 - 1, 2**40)]
    for blocks, n in pairs:
        for k in LIMITS[SHA256].k:
            yield {
                "m": str(BLOCK * blocks),
                "k": k,
                "n": str(n),
                "rate": model(n, blocks, k).hex(),
            }


NUMBERS = (0, 1, 2, 5, 10, 64, 100, 1000, 10**4, 65535, 65536, 65537, 10**5,
           10**6, 4 * 10**6, 10**7, 10**9, 2**40)
RATES = (0.99, 0.5, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-6, 1e-9)
# With both ends of what a rate may be.
V1_RATES = (1 - 2**-53, 0.5, 0.01, 1e-4, 1.0789593326684802e-05, 1e-9,
            1e-17, 1e-18, 2.0**-1022)
# Every number of records with every rate and number of hashes asked.
SIZING = (
    (SHA256, NUMBERS, RATES, (0,)),
    (SHA256, (1, 10, 1000, 65536, 65537, 10**6, 2**40),
     (0.99, 0.5, 0.01, 1e-4, 1e-9), (1, 3, 6, 14)),
    (SHA256, (0, 2**40 + 1), (0.01,), (1, 14)),
    (SHA256, (65535, 65536, 65537, 65538), (0.8646688468054464,
     0.7076433687050756, 0.651130792772989), (0, 6, 14)),
    (BLAKE2B, (0, 1, 100, 65537, 10**6), (0.5, 0.01, 1e-6), (0, 6)),
    (DOC, (0, 1, 5, 20, 64, 65), V1_RATES, (0, 1, 3, 8)),
    (ES, (0, 1, 100, 10**5, 100085, 100086, 10**6, 10**7), V1_RATES, (0, 1, 4, 16)),
    (KEY_INDEX, (0, 1, 65537, 10**9, 2**40, 2**40 + 1, 2**62), V1_RATES,
     (0, 1, 7, 256)),
)


def sizing_vectors():
    for protocol, numbers, rates, hashes in SIZING:
        for n, asked, rate in product(numbers, hashes, rates):
            try:
                m, k = size(protocol, n, rate, asked)
            except Refused:
                m = k = None
            yield {
                "protocol": protocol,
                "n": str(n),
                "rate": rate.hex(),
                "hashes_asked": asked,
                "m": None if m is None else str(m),
                "k": k,
                "refused": m is None,
            }


BAD_UTF8 = {
    "a byte that never occurs": b"\xff",
    "a lone continuation byte": b"\x80",
    "a truncated character of 2 bytes": b"\xc3",
    "a truncated character of 3 bytes": b"a\xe2\x82",
    "a truncated character of 4 bytes": b"\xf0\x9f\x98",
    "a character cut short by another": b"\xe2\x82a",
    "an overlong NUL": b"\xc0\x80",
    "an overlong slash": b"\xe0\x80\xaf",
    "an overlong euro sign": b"\xf0\x82\x82\xac",
    "the first surrogate": b"\xed\xa0\x80",
    "the last surrogate": b"\xed\xbf\xbf",
    "a pair of surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
    "above U+10FFFF": b"\xf4\x90\x80\x80",
    "good text, then a bad byte": b"item:0\xfe",
}


def refused_inputs(protocol):
    """Triples (why, change of the usual configuration, item or None)."""
    limits = LIMITS[protocol]
    yield "m is 0", {"m": 0}, None
    if limits.m[0] > 1:
        yield "m 1 below the least", {"m": limits.m[0] - 1}, None
    if limits.m[-1] < 2**64 - 1:
        yield "m 1 above the most", {"m": limits.m[-1] + 1}, None
    if protocol in V2:
        yield "m 512 above the most", {"m": 2**48 + 512}, None
        yield "m no multiple of 512", {"m": 513}, None
        yield "m no multiple of 512", {"m": 2**20 + 64}, None
        yield "m no multiple of 512", {"m": 2**48 - 1}, None
        yield "m far above the most", {"m": 2**64 - 512}, None
    elif protocol != KEY_INDEX:
        yield "m far above the most", {"m": 2**64 - 1}, None
    yield "k is 0", {"k": 0}, None
    yield "k 1 above the most", {"k": limits.k[-1] + 1}, None

    longest = limits.seed[-1]
    why = "seed 1 byte too long" if longest else "no seed is taken"
    yield why, {"seed": b"s" * (longest + 1)}, None
    yield "key empty but present", {"key": b""}, None
    if limits.key:
        yield "key too short", {"key": b"k"}, None
        yield "key 1 byte too short", {"key": b"k" * 15}, None
        yield "key 1 byte too long", {"key": b"k" * 65}, None
    else:
        yield "no key is taken", {"key": b"k" * 16}, None

    if protocol == KEY_INDEX:
        for size in (0, 7, 9):
            yield f"item of {size} bytes, not 8", {}, bytes(size)
    elif protocol not in V2:
        yield "item 1 byte too long", {}, b"i" * (limits.item[-1] + 1)
    if protocol == ES:
        whole = "\u00e9".encode() * 500_000
        yield "item 1 character too long", {}, whole + "\u00e9".encode()
        for why, item in BAD_UTF8.items():
            yield f"item not UTF-8: {why}", {}, item


def refused_vectors():
    for protocol, (usual, usual_item) in USUAL.items():
        for why, change, item in refused_inputs(protocol):
            if item is None:
                item = usual_item
            yield refused_vector(why, usual._replace(**change), item)
    usual, item = USUAL[SHA256]
    for name in ("", "SHA256-V2", "sha256-v3", "sha256-v2 ", "sha256-v2\0",
                 "sha256", "doc-membership-v2"):
        config = usual._replace(protocol=name)
        yield refused_vector("unknown protocol", config, item)


def refused_vector(why, config, item):
    if accepted(config, item):
        raise AssertionError(f"accepted, though {why}: {config}")
    return {"why": why, **config.describe(), "item": describe_item(item)}


# Output -------------------------------------------------------------------


def render():
    lists = {
        "positions": list(position_vectors()),
        "snapshots": list(snapshot_vectors()),
        "shards": list(shard_vectors()),
        "rates": list(rate_vectors()),
        "sizing": list(sizing_vectors()),
        "refused": list(refused_vectors()),
    }
    document = {
        "about": "Test vectors for Bloom filter protocols, made by vectors.py,"
        " whose documentation says what each list holds.",
        "counts": {name: len(entries) for name, entries in lists.items()},
        **lists,
    }
    return json.dumps(document, indent=1) + "\n"


def difference(expected, found):
    """Where two texts differ first, or None."""
    if expected == found:
        return None
    pairs = zip(expected.splitlines(), found.splitlines())
    for number, (ours, theirs) in enumerate(pairs, start=1):
        if ours != theirs:
            return f"line {number} is {theirs!r}, should be {ours!r}"
    return "in its length or its line ends"


def main():
    parser = argparse.ArgumentParser(
        description="Print the test vectors, or check a file that holds them."
    )
    parser.add_argument("--check", metavar="FILE", type=Path)
    file = parser.parse_args().check
    rendered = render()
    if file is None:
        # As bytes, so that no system puts in line ends of its own.
        sys.stdout.buffer.write(rendered.encode("ascii"))
        return
    try:
        found = file.read_bytes().decode("ascii", "backslashreplace")
    except OSError as error:
        sys.exit(f"vectors.py: {error}")
    problem = difference(rendered, found)
    if problem:
        sys.exit(f"vectors.py: {file} differs: {problem}")


if __name__ == "__main__":
    main()
