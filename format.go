package bloom

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/b1cc2673/bloom/internal/digest"
)

// The file is the memory (SPEC.md, section 5): a header of 256 bytes, and the
// sections as they are in a Snapshot, each at a multiple of 64 bytes:
//
//	header | filter | index | checks | buckets
//
// A filter alone has neither index nor buckets. checks holds a CRC-32C for
// each chunk of filter and index, so that opening uses all cores; the header
// holds a SHA-256 of each section, and its own SHA-256 is the identity.

const (
	formatVersion = 1
	headerSize    = 256
	sectionAlign  = 64
	sectionChunk  = 1 << 20 // what checksums and digests are taken over

	kindSnapshot = 1
	kindFilter   = 2
	flagKeyed    = 1
)

// Not text, and damaged by anything that converts line endings.
const magic = "\x89bloom\r\n"

// A header is what the first 256 bytes of a file say. What follows from other
// fields, such as the lengths of most sections, is not repeated in it.
type header struct {
	kind     uint8
	protocol Protocol
	k        int
	seed     []byte
	keyed    bool
	m, n     uint64
	setBytes uint64 // of the buckets

	filter, index, set [sha256.Size]byte // digests of the sections
	keyCheck           [16]byte
}

// append appends the header's 256 bytes.
func (h *header) append(dst []byte) []byte {
	start := len(dst)
	flags := byte(0)
	if h.keyed {
		flags |= flagKeyed
	}
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint16(dst, formatVersion)
	dst = append(dst, h.kind, protocols[h.protocol].number)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.k))
	dst = append(dst, byte(len(h.seed)), flags)
	dst = binary.LittleEndian.AppendUint64(dst, h.m)
	dst = binary.LittleEndian.AppendUint64(dst, h.n)
	dst = binary.LittleEndian.AppendUint64(dst, h.setBytes)
	l, _ := h.layout()
	dst = binary.LittleEndian.AppendUint64(dst, l.total)
	dst = append(append(dst, h.seed...), make([]byte, 32-len(h.seed))...)
	dst = append(append(append(dst, h.filter[:]...), h.index[:]...), h.set[:]...)
	dst = append(dst, h.keyCheck[:]...)
	dst = append(dst, make([]byte, headerSize-4-(len(dst)-start))...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// parseHeader accepts what append gives, and nothing else.
func parseHeader(b []byte) (h header, err error) {
	if n := min(len(b), len(magic)); string(b[:n]) != magic[:n] {
		return h, fmt.Errorf("%w: this is no snapshot and no filter", ErrVersion)
	}
	if len(b) < headerSize {
		return h, fmt.Errorf("%w: %d bytes, too few for a header", ErrCorrupt, len(b))
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != formatVersion {
		return h, fmt.Errorf("%w: format version %d; this package knows %d", ErrVersion, v, formatVersion)
	}
	if crc32.Checksum(b[:headerSize-4], castagnoli) != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return h, fmt.Errorf("%w: the header does not match its checksum", ErrCorrupt)
	}
	h.kind = b[10]
	if h.kind != kindSnapshot && h.kind != kindFilter {
		return h, fmt.Errorf("%w: kind %d", ErrVersion, h.kind)
	}
	known := false
	for p := range protocols {
		if protocols[p].number == b[11] {
			h.protocol, known = Protocol(p), true
		}
	}
	if !known {
		return h, fmt.Errorf("%w: protocol number %d", ErrVersion, b[11])
	}
	if b[15]&^flagKeyed != 0 {
		return h, fmt.Errorf("%w: flags %#x", ErrVersion, b[15])
	}
	h.keyed = b[15]&flagKeyed != 0
	h.k = int(binary.LittleEndian.Uint16(b[12:]))
	h.m = binary.LittleEndian.Uint64(b[16:])
	h.n = binary.LittleEndian.Uint64(b[24:])
	h.setBytes = binary.LittleEndian.Uint64(b[32:])
	p := &protocols[h.protocol]
	switch {
	case p.checkBits(h.m) != nil:
		return h, fmt.Errorf("%w: header: m = %d bits is outside the limits of %s", ErrCorrupt, h.m, p.name)
	case p.checkHashes(h.k) != nil:
		return h, fmt.Errorf("%w: header: k = %d hashes is outside the limits of %s", ErrCorrupt, h.k, p.name)
	case h.n > p.mostRecords:
		return h, fmt.Errorf("%w: header: n = %d records is outside the limits of %s", ErrCorrupt, h.n, p.name)
	case int(b[14]) > p.mostSeed:
		return h, fmt.Errorf("%w: header: seed of %d bytes is outside the limits of %s", ErrCorrupt, b[14], p.name)
	case h.keyed && p.mostKey == 0:
		return h, fmt.Errorf("%w: header: keyed, and %s takes no key", ErrCorrupt, p.name)
	}
	h.seed = append([]byte(nil), b[48:48+b[14]]...)
	copy(h.filter[:], b[80:])
	copy(h.index[:], b[112:])
	copy(h.set[:], b[144:])
	copy(h.keyCheck[:], b[176:])
	if _, ok := h.layout(); !ok {
		return h, fmt.Errorf("%w: header: n = %d records and %d bytes of buckets do not fit together", ErrCorrupt, h.n, h.setBytes)
	}
	// Padding, reserved bytes, and fields that a filter alone leaves empty.
	if !h.keyed && h.keyCheck != [16]byte{} ||
		h.kind == kindFilter && (h.setBytes != 0 || h.index != [sha256.Size]byte{} || h.set != [sha256.Size]byte{}) ||
		!bytes.Equal(h.append(nil), b[:headerSize]) {
		return h, fmt.Errorf("%w: header: not in canonical form", ErrCorrupt)
	}
	return h, nil
}

// A layout is where sections begin and how long they are, in bytes.
type layout struct {
	filter                    uint64 // length; it begins at headerSize
	index, indexLen           uint64
	checks, checksLen         uint64
	buckets                   uint64
	filterChunks, indexChunks uint64
	total                     uint64
}

func (h *header) layout() (l layout, ok bool) {
	align := func(x uint64) uint64 { return (x + sectionAlign - 1) &^ (sectionAlign - 1) }
	chunks := func(x uint64) uint64 { return (x + sectionChunk - 1) / sectionChunk }
	l.filter = filterBytes(h.m)
	l.index = align(headerSize + l.filter)
	if h.kind == kindSnapshot {
		set := newFrozenSet(h.n)
		l.indexLen = 8 * (set.buckets + 1)
		// Every record has a tag and a length, every bucket the rest of a
		// head. This bounds n, and with it all that is computed from it.
		if h.n > 1<<60 || h.setBytes > math.MaxInt64/2 || h.setBytes < 2*h.n || (h.setBytes-2*h.n)/set.headSize(0, 0) < set.buckets {
			return l, false
		}
	}
	l.checks = align(l.index + l.indexLen)
	l.filterChunks, l.indexChunks = chunks(l.filter), chunks(l.indexLen)
	l.checksLen = 4 * (l.filterChunks + l.indexChunks)
	l.total = l.checks + l.checksLen
	if h.kind == kindSnapshot {
		l.buckets = align(l.total)
		l.total = l.buckets + h.setBytes
	}
	return l, l.total <= math.MaxInt64
}

// salt is what ties the heads of a set to the filter and the index that they
// were built with (SPEC.md, section 4.3).
func (h *header) salt() uint64 {
	b := append([]byte("bloom2"), 0xFD, protocols[h.protocol].number)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.k))
	b = binary.LittleEndian.AppendUint64(b, h.m)
	b = binary.LittleEndian.AppendUint64(b, h.n)
	b = append(append(b, byte(len(h.seed))), h.seed...)
	b = append(append(b, h.filter[:]...), h.index[:]...)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// sum is the SHA-256 of the header: the identity.
func (h *header) sum() [sha256.Size]byte { return sha256.Sum256(h.append(nil)) }

// seal computes the key check: 16 bytes of BLAKE2b-256 under the key of
// "bloom2" ‖ FF ‖ the SHA-256 of the header with zeros for the check. keyed is
// the state after the key, which blake2b-v2 starts its digests from, too.
func (h *header) seal(keyed digest.BLAKE2b) (check [16]byte) {
	unsealed := *h
	unsealed.keyCheck = check
	sum := unsealed.sum()
	d := keyed
	d.Write([]byte{'b', 'l', 'o', 'o', 'm', '2', 0xFF})
	d.Write(sum[:])
	words := d.Sum()
	binary.BigEndian.PutUint64(check[:8], words[0])
	binary.BigEndian.PutUint64(check[8:], words[1])
	return check
}

// unseal checks the key that a file is opened with.
func (h *header) unseal(key []byte) error {
	p := &protocols[h.protocol]
	switch {
	case !h.keyed && key != nil:
		return fmt.Errorf("%w: a key is given, and the file was made without one", ErrKey)
	case !h.keyed:
		return nil
	case key == nil:
		return fmt.Errorf("%w: no key is given, and the file was made with one", ErrKey)
	case len(key) < p.leastKey || len(key) > p.mostKey:
		return fmt.Errorf("%w: key of %d bytes; %s takes %d to %d", ErrKey, len(key), p.name, p.leastKey, p.mostKey)
	}
	if check := h.seal(digest.NewBLAKE2b(32, key, "")); subtle.ConstantTimeCompare(check[:], h.keyCheck[:]) != 1 {
		return fmt.Errorf("%w: the file was made with another key", ErrKey)
	}
	return nil
}

// sectionDigest is the SHA-256 of the SHA-256 digests of a section's chunks.
func sectionDigest(section []byte) [sha256.Size]byte {
	chunks := make([][sha256.Size]byte, (len(section)+sectionChunk-1)/sectionChunk)
	parallel(cores(), len(chunks), func(_, i int) { chunks[i] = sha256.Sum256(chunk(section, i)) })
	return joinDigests(chunks)
}

// joinDigests is the digest of a section whose chunks have these.
func joinDigests(chunks [][sha256.Size]byte) [sha256.Size]byte {
	h := sha256.New()
	for i := range chunks {
		h.Write(chunks[i][:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func chunk(section []byte, i int) []byte {
	return section[i*sectionChunk : min(len(section), (i+1)*sectionChunk)]
}

// appendChecks appends the CRC-32C of each chunk of a section.
func appendChecks(dst, section []byte) []byte {
	for i := range (len(section) + sectionChunk - 1) / sectionChunk {
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(chunk(section, i), castagnoli))
	}
	return dst
}
