package bloom

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// The frozen set (SPEC.md, section 4): all records, ordered by their whole
// digest and then by their bytes, about eight to a bucket. Two sections of
// plain bytes hold it: the index, where each bucket begins, and the buckets,
// each a head and its records' bytes. Filter block and bucket both rise with
// the digest's first word, so the digest that the filter asked for is all
// that an exact lookup needs.

// bucketRecords is how many records a bucket holds on average.
const bucketRecords = 8

// A frozenSet holds no pointer but to its two sections.
type frozenSet struct {
	n       uint64 // records
	buckets uint64 // K, at least 1
	width   int    // bytes of an ordinal in a head
	salt    uint64 // ties heads to the filter they were built with
	index   []byte // K+1 offsets of 8 bytes into data
	data    []byte // the buckets
}

// newFrozenSet returns the set for n records, its sections still to be made.
func newFrozenSet(n, salt uint64) frozenSet {
	return frozenSet{
		n:       n,
		buckets: max(1, n/bucketRecords+min(1, n%bucketRecords)),
		width:   max(1, (bits.Len64(n)+7)/8),
		salt:    salt,
	}
}

// bucket is where the records of a digest are.
func (s *frozenSet) bucket(w [4]uint64) uint64 {
	hi, _ := bits.Mul64(w[0], s.buckets)
	return hi
}

// tag is what a head keeps of a record's digest.
func tag(w [4]uint64) byte { return byte(w[3]) }

// offset is where bucket b begins, and bucket b-1 ends.
func (s *frozenSet) offset(b uint64) uint64 { return binary.LittleEndian.Uint64(s.index[8*b:]) }

// An entry is a record on its way into the set.
type entry struct {
	words  [4]uint64
	record []byte
}

// A head, in the order of its bytes:
//
//	shape    1        low 2 bits: 0, 1, 2 for lengths of 1, 2, 4 bytes;
//	                  high 6 bits: count, or 63 for an escaped one
//	count    0 or 8   if escaped
//	first    width    the ordinal of its first record
//	check    4        CRC-32C of the records' bytes
//	tags     count
//	lengths  count·(1, 2 or 4)
//	own      4        CRC-32C of salt ‖ bucket number ‖ the head so far
const escaped = 63

// lengthCode is the least code for lengths up to longest.
func lengthCode(longest int) int {
	switch {
	case longest < 1<<8:
		return 0
	case longest < 1<<16:
		return 1
	}
	return 2
}

// headSize is the size of a head of so many records.
func (s *frozenSet) headSize(count, code int) int {
	size := 1 + s.width + 4 + count + count<<code + 4
	if count >= escaped {
		size += 8
	}
	return size
}

// bucketSize is the size of the bucket that appendBucket makes of entries.
func (s *frozenSet) bucketSize(entries []entry) uint64 {
	longest, total := 0, uint64(0)
	for i := range entries {
		longest = max(longest, len(entries[i].record))
		total += uint64(len(entries[i].record))
	}
	return uint64(s.headSize(len(entries), lengthCode(longest))) + total
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// headCheck is the CRC-32C that ends the head of bucket b.
func (s *frozenSet) headCheck(b uint64, head []byte) uint32 {
	var buf [16]byte
	binary.LittleEndian.PutUint64(buf[:8], s.salt)
	binary.LittleEndian.PutUint64(buf[8:], b)
	return crc32.Update(crc32.Update(0, castagnoli, buf[:]), castagnoli, head)
}

// appendBucket appends bucket b, whose first record has the ordinal first.
func (s *frozenSet) appendBucket(dst []byte, b, first uint64, entries []entry) []byte {
	start := len(dst)
	longest, check := 0, uint32(0)
	for i := range entries {
		longest = max(longest, len(entries[i].record))
		check = crc32.Update(check, castagnoli, entries[i].record)
	}
	code := lengthCode(longest)
	if len(entries) < escaped {
		dst = append(dst, byte(code|len(entries)<<2))
	} else {
		dst = binary.LittleEndian.AppendUint64(append(dst, byte(code|escaped<<2)), uint64(len(entries)))
	}
	for i := range s.width {
		dst = append(dst, byte(first>>(8*i)))
	}
	dst = binary.LittleEndian.AppendUint32(dst, check)
	for i := range entries {
		dst = append(dst, tag(entries[i].words))
	}
	for i := range entries {
		for j := range 1 << code {
			dst = append(dst, byte(len(entries[i].record)>>(8*j)))
		}
	}
	dst = binary.LittleEndian.AppendUint32(dst, s.headCheck(b, dst[start:]))
	for i := range entries {
		dst = append(dst, entries[i].record...)
	}
	return dst
}

// A head is a bucket's head, taken apart. Its slices point into the bucket.
type head struct {
	count   int
	code    int // of the lengths' size
	first   uint64
	check   uint32
	tags    []byte
	lengths []byte
	size    int // of the head itself
}

// readHead takes apart the head that verified bytes begin with.
func (s *frozenSet) readHead(b []byte) head {
	h := head{count: int(b[0] >> 2), code: int(b[0] & 3)}
	at := 1
	if h.count == escaped {
		h.count = int(binary.LittleEndian.Uint64(b[at:]))
		at += 8
	}
	for i := range s.width {
		h.first |= uint64(b[at+i]) << (8 * i)
	}
	at += s.width
	h.check = binary.LittleEndian.Uint32(b[at:])
	at += 4
	h.tags = b[at : at+h.count]
	at += h.count
	h.lengths = b[at : at+h.count<<h.code]
	h.size = at + h.count<<h.code + 4
	return h
}

// length is the length of record i.
func (h *head) length(i int) int {
	switch h.code {
	case 0:
		return int(h.lengths[i])
	case 1:
		return int(binary.LittleEndian.Uint16(h.lengths[2*i:]))
	}
	return int(binary.LittleEndian.Uint32(h.lengths[4*i:]))
}

// find looks for exactly these bytes. A record's ordinal is its place in the
// order of all.
func (s *frozenSet) find(w [4]uint64, item []byte) (ordinal uint64, ok bool) {
	b := s.bucket(w)
	data := s.data[s.offset(b):s.offset(b+1)]
	h := s.readHead(data)
	at := h.size
	for i, t := range h.tags {
		n := h.length(i)
		if t == tag(w) && n == len(item) && bytes.Equal(data[at:at+n], item) {
			return h.first + uint64(i), true
		}
		at += n
	}
	return 0, false
}

// records calls yield for each record of bucket b in order, with a slice of
// the set's own bytes.
func (s *frozenSet) records(b uint64, yield func(record []byte) bool) bool {
	data := s.data[s.offset(b):s.offset(b+1)]
	h := s.readHead(data)
	at := h.size
	for i := range h.count {
		n := h.length(i)
		if !yield(data[at : at+n : at+n]) {
			return false
		}
		at += n
	}
	return true
}
