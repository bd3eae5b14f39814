package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"

	"github.com/b1cc2673/bloom/internal/digest"
	"github.com/b1cc2673/bloom/internal/mapping"
)

// The frozen set (SPEC.md, section 4): all records, ordered by their whole
// digest and then by their bytes, about eight to a bucket. Two sections of
// plain bytes hold it: the index, where each bucket begins, and the buckets,
// each a head and its records' bytes. Filter block and bucket both rise with
// the digest's first word, so the digest that the filter asked for is all
// that an exact lookup needs.

// recordsPerBucket is how many records a bucket holds on average.
const recordsPerBucket = 8

// A frozenSet is two sections of bytes, where they come from, and what hashes.
//
// Bytes that are held were verified when they came, and lookups trust them.
// Bytes in a mapping or behind a reader are verified each time they decide.
type frozenSet struct {
	scheme  *scheme // of the set digest
	n       uint64  // records
	buckets uint64  // K, at least 1
	width   int     // bytes of an ordinal in a head
	salt    uint64  // ties heads to the filter and index they were built with
	index   []byte  // K+1 offsets of 8 bytes into the buckets
	size    uint64  // bytes of the buckets
	data    []byte  // the buckets, held or mapped; nil: behind source
	held    bool    // data was verified, cannot change, and has slack bytes more in its capacity
	source  io.ReaderAt
	at      int64  // where the buckets begin in source
	most    uint64 // bytes that may be allocated, for a bucket say, if not held
}

// newFrozenSet returns the set for n records, its sections still to be made.
func newFrozenSet(n uint64) frozenSet {
	return frozenSet{
		n:       n,
		buckets: max(1, n/recordsPerBucket+min(1, n%recordsPerBucket)),
		width:   max(1, (bits.Len64(n)+7)/8),
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
func lengthCode(longest uint64) int {
	switch {
	case longest < 1<<8:
		return 0
	case longest < 1<<16:
		return 1
	}
	return 2
}

// measure returns the code for entries' lengths, and the sum of them.
func measure(entries []entry) (code int, total uint64) {
	longest := uint64(0)
	for i := range entries {
		n := uint64(len(entries[i].record))
		longest = max(longest, n)
		total += n
	}
	return lengthCode(longest), total
}

// headSize is the size of a head of so many records.
func (s *frozenSet) headSize(count uint64, code int) uint64 {
	size := 1 + uint64(s.width) + 4 + count + count<<code + 4
	if count >= escaped {
		size += 8
	}
	return size
}

// bucketSize is the size of the bucket that appendBucket makes of entries.
func (s *frozenSet) bucketSize(entries []entry) uint64 {
	code, total := measure(entries)
	return s.headSize(uint64(len(entries)), code) + total
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// headCheck is the CRC-32C that ends the head of bucket b. What precedes the
// head goes through the table byte by byte: a buffer for it would be allocated
// by every lookup, as crc32.Update lets its bytes escape.
func (s *frozenSet) headCheck(b uint64, head []byte) uint32 {
	crc := ^uint32(0)
	for _, x := range [2]uint64{s.salt, b} {
		for i := 0; i < 64; i += 8 {
			crc = castagnoli[byte(crc)^byte(x>>i)] ^ crc>>8
		}
	}
	return crc32.Update(^crc, castagnoli, head)
}

// appendBucket appends bucket b, whose first record has the ordinal first.
func (s *frozenSet) appendBucket(dst []byte, b, first uint64, entries []entry) []byte {
	start := len(dst)
	dst = s.appendHead(dst, first, entries)
	records := len(dst)
	for i := range entries {
		dst = append(dst, entries[i].record...)
	}
	s.seal(dst[start:records], b, crc32.Checksum(dst[records:], castagnoli))
	return dst
}

// appendHead appends the head of such a bucket, for seal to fill in its two
// checks.
func (s *frozenSet) appendHead(dst []byte, first uint64, entries []entry) []byte {
	code, _ := measure(entries)
	if len(entries) < escaped {
		dst = append(dst, byte(code|len(entries)<<2))
	} else {
		dst = binary.LittleEndian.AppendUint64(append(dst, byte(code|escaped<<2)), uint64(len(entries)))
	}
	for i := range s.width {
		dst = append(dst, byte(first>>(8*i)))
	}
	dst = append(dst, 0, 0, 0, 0)
	for i := range entries {
		dst = append(dst, tag(entries[i].words))
	}
	for i := range entries {
		for j := range 1 << code {
			dst = append(dst, byte(len(entries[i].record)>>(8*j)))
		}
	}
	return append(dst, 0, 0, 0, 0)
}

// seal puts the checks of its records and of itself into the head of bucket b.
func (s *frozenSet) seal(head []byte, b uint64, records uint32) {
	at := 1 + s.width
	if head[0]>>2 == escaped {
		at += 8
	}
	own := len(head) - 4
	binary.LittleEndian.PutUint32(head[at:], records)
	binary.LittleEndian.PutUint32(head[own:], s.headCheck(b, head[:own]))
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

// shape reads the count and the lengths' code that b begins with, which has 9
// bytes if the count is escaped.
func shape(b []byte) (count uint64, code int) {
	count, code = uint64(b[0]>>2), int(b[0]&3)
	if count == escaped {
		count = binary.LittleEndian.Uint64(b[1:])
	}
	return count, code
}

// readHead takes apart the head that b begins with, whose shape is known;
// parseHead is for bytes that nobody verified.
func (s *frozenSet) readHead(b []byte, count, code int) head {
	h := head{count: count, code: code, first: s.first(b, count)}
	at := 1 + s.width
	if count >= escaped {
		at += 8
	}
	h.check = binary.LittleEndian.Uint32(b[at:])
	at += 4
	h.tags = b[at : at+count]
	at += count
	h.lengths = b[at : at+count<<code]
	h.size = at + count<<code + 4
	return h
}

// first is the ordinal in the head that b begins with.
func (s *frozenSet) first(b []byte, count int) (first uint64) {
	at := 1
	if count >= escaped {
		at += 8
	}
	for i := range s.width {
		first |= uint64(b[at+i]) << (8 * i)
	}
	return first
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

// fits reports whether the lengths can be used as ints and add up to size.
func (h *head) fits(size uint64) bool {
	longest, total := uint64(0), uint64(0)
	for i := range h.count {
		n := uint64(h.length(i)) & math.MaxUint32 // an int of 32 bits may have come out negative
		longest = max(longest, n)
		total += n // of less than 2^31 lengths below 2^32
	}
	return total == size && longest <= math.MaxInt && h.code == lengthCode(longest)
}

// headShape is shape for bytes that nobody verified, of a bucket of size
// bytes. Such a head fits in the bucket.
func (s *frozenSet) headShape(b []byte, size uint64) (count, code int, err error) {
	if size < s.headSize(0, 0) {
		return 0, 0, errors.New("no room for a head")
	}
	n, code := shape(b)
	switch {
	case n < escaped && b[0]>>2 == escaped:
		err = fmt.Errorf("count of %d is not in canonical form", n)
	case code > 2:
		err = fmt.Errorf("length code %d", code)
	case n > size || n > s.n || n > math.MaxInt32:
		err = fmt.Errorf("count of %d records", n)
	case s.headSize(n, code) > size:
		err = errors.New("the head does not fit in it")
	}
	return int(n), code, err
}

// parseHead takes apart the whole head of bucket b, which has size bytes,
// and accepts what appendBucket makes and nothing else.
func (s *frozenSet) parseHead(b uint64, data []byte, count, code int, size uint64) (head, error) {
	h := s.readHead(data, count, code)
	own := h.size - 4
	switch {
	case s.headCheck(b, data[:own]) != binary.LittleEndian.Uint32(data[own:]):
		return h, errors.New("the head does not match its checksum, or is that of another place or file")
	case h.first > s.n || uint64(h.count) > s.n-h.first:
		return h, fmt.Errorf("%d records from ordinal %d, of %d in all", h.count, h.first, s.n)
	case !h.fits(size - uint64(h.size)):
		return h, errors.New("lengths do not add up, or are not in canonical form")
	}
	return h, nil
}

// corruptBucket names the bucket that a fault was found in.
func corruptBucket(b uint64, fault error) error {
	return fmt.Errorf("%w: bucket %d: %w", ErrCorrupt, b, fault)
}

// find looks for exactly these bytes, whose set digest is w. A record's
// ordinal is its place in the order of all.
func (s *frozenSet) find(w *[4]uint64, item []byte) (ordinal uint64, ok bool, err error) {
	if !s.held {
		return s.findVerified(w, item)
	}
	data := s.data[s.offset(s.bucket(*w)):cap(s.data)]
	digest.PrefetchBehind(&data[0]) // the records, while the head is on its way
	i, at := s.locate(data, w, len(item))
	if i == none {
		return 0, false, nil
	}
	if i == unclear || !bytes.Equal(data[at:at+len(item)], item) {
		if i, ok = s.scan(data, w, item); !ok {
			return 0, false, nil
		}
	}
	count, _ := shape(data)
	return s.first(data, int(count)) + uint64(i), true, nil
}

const (
	everyByte = 0x0101010101010101
	topBits   = 0x8080808080808080

	none    = -1 // no record has the item's tag and length
	unclear = -2 // ask scan

	// slack is how many bytes locate may read, and not use, behind a bucket
	// whose head it reads: tags and lengths of sixteen records.
	slack = 64
)

// zeroBytes sets the top bit of each byte of x that is zero, and no other.
func zeroBytes(x uint64) uint64 { return ^((x&^topBits + ^uint64(topBits)) | x) & topBits }

// sumBytes adds up the eight bytes of x.
func sumBytes(x uint64) uint64 {
	const evenBytes = 0x00ff00ff00ff00ff
	return (x&evenBytes + x>>8&evenBytes) * 0x0001000100010001 >> 48
}

// locate returns the first record of a verified bucket that has the item's
// tag and length, and where its bytes begin. It looks at sixteen records at
// once, as bytes of words, and has no branch that depends on which it is: a
// loop over the records would be mispredicted in every lookup. Other buckets,
// one in two hundred unless records are long, are left to scan
// (TestLocateIsScan).
func (s *frozenSet) locate(data []byte, w *[4]uint64, length int) (i, at int) {
	count := int(data[0] >> 2)
	if data[0]&3 != 0 || count > 16 || length > 255 {
		return unclear, 0
	}
	tags := 1 + s.width + 4
	head := data[tags : tags+slack/2]
	lengths := data[tags+count : tags+count+16]
	theTag, theLength := uint64(tag(*w))*everyByte, uint64(length)*everyByte
	low, high := binary.LittleEndian.Uint64(lengths), binary.LittleEndian.Uint64(lengths[8:])
	inLow := zeroBytes(binary.LittleEndian.Uint64(head)^theTag) & zeroBytes(low^theLength)
	inHigh := zeroBytes(binary.LittleEndian.Uint64(head[8:])^theTag) & zeroBytes(high^theLength)
	// Only the first count bytes are records: shifts by 64 and more give 0.
	inLow &= 1<<(8*uint(count)) - 1
	inHigh &= 1<<(8*uint(max(count-8, 0))) - 1
	if inLow|inHigh == 0 {
		return none, 0
	}
	// The lengths of the records before it: all of low, if it is not there.
	before := sumBytes(low & ((inLow&-inLow)>>7 - 1))
	notLow := (inLow|-inLow)>>63 - 1 // all ones if it is not in low
	before += sumBytes(high & ((inHigh&-inHigh)>>7 - 1) & notLow)
	i = bits.TrailingZeros64(inLow)>>3 + bits.TrailingZeros64(inHigh)>>3&int(notLow)
	return i, tags + 2*count + 4 + int(before)
}

// scan looks at all records of a verified bucket, one by one.
func (s *frozenSet) scan(data []byte, w *[4]uint64, item []byte) (i int, ok bool) {
	count, code := shape(data)
	h := s.readHead(data, int(count), code)
	at := h.size
	for i, t := range h.tags {
		n := h.length(i)
		if t == tag(*w) && n == len(item) && bytes.Equal(data[at:at+n], item) {
			return i, true
		}
		at += n
	}
	return 0, false
}

// headRead is how much of a bucket is read at first, where it is behind a
// reader: all of most buckets, the head of nearly all.
const headRead = 4096

// A bucket is one whose head was verified. The bytes of a mapping can change
// even so, if someone writes into the file: lengths are bounded once more when
// they are used, and what a "no" was said from is checked once more.
type bucket struct {
	head
	number uint64
	start  uint64
	end    uint64
	data   []byte // all of it, or, behind a reader, what was read
}

var errChanged = errors.New("it has changed while it was read")

// readBucket verifies the head of bucket b.
func (s *frozenSet) readBucket(b uint64) (k bucket, err error) {
	start, end := s.offset(b), s.offset(b+1)
	if start > end || end > s.size {
		return k, corruptBucket(b, fmt.Errorf("index has it from %d to %d of %d", start, end, s.size))
	}
	k.number, k.start, k.end = b, start, end
	if s.data != nil {
		k.data = s.data[start:end:end]
	} else if err := s.read(&k, headRead); err != nil {
		return k, err
	}
	count, code, err := s.headShape(k.data, end-start)
	if err != nil {
		return k, corruptBucket(b, err)
	}
	if err := s.read(&k, s.headSize(uint64(count), code)); err != nil {
		return k, err
	}
	if k.head, err = s.parseHead(b, k.data, count, code, end-start); err != nil {
		return k, corruptBucket(b, err)
	}
	return k, nil
}

// read reads on until the first n bytes of a bucket, or all, are there.
func (s *frozenSet) read(k *bucket, n uint64) error {
	n = min(n, k.end-k.start)
	have := uint64(len(k.data))
	if n <= have {
		return nil
	}
	if err := s.allow(n, k.number); err != nil {
		return err
	}
	data := make([]byte, n)
	copy(data, k.data)
	if err := readFullAt(s.source, data[have:], s.at+int64(k.start+have)); err != nil {
		return reading(err)
	}
	k.data = data
	return nil
}

// allow refuses to make room for n bytes of bucket b, if they are too many.
func (s *frozenSet) allow(n, b uint64) error {
	if err := allow(n, s.most); err != nil {
		return fmt.Errorf("%w (bucket %d)", err, b)
	}
	return nil
}

// readRecords returns the bytes of a bucket's records, verified.
func (s *frozenSet) readRecords(k *bucket) ([]byte, error) {
	if err := s.read(k, k.end-k.start); err != nil {
		return nil, err
	}
	records := k.data[k.size:]
	if crc32.Checksum(records, castagnoli) != k.check {
		return nil, corruptBucket(k.number, errors.New("the records do not match their checksum"))
	}
	return records, nil
}

// findVerified is find for bytes that are not held. The head is verified
// before any answer. The records' bytes are before "yes", and before "no"
// where a record has the item's tag and length; for a "yes" the record is
// also checked to lie between its neighbours in the canonical order.
func (s *frozenSet) findVerified(w *[4]uint64, item []byte) (ordinal uint64, ok bool, err error) {
	k, err := s.readBucket(s.bucket(*w))
	if err != nil {
		return 0, false, err
	}
	candidate := false
	for i, t := range k.tags {
		candidate = candidate || t == tag(*w) && k.length(i) == len(item)
	}
	if !candidate {
		return 0, false, s.unchanged(&k, nil)
	}
	records, err := s.readRecords(&k)
	if err != nil {
		return 0, false, err
	}
	var before, after []byte
	for i, rest := 0, records; i < k.count; i++ {
		n := k.length(i)
		if uint(n) > uint(len(rest)) {
			return 0, false, corruptBucket(k.number, errChanged)
		}
		record := rest[:n]
		rest = rest[n:]
		if k.tags[i] != tag(*w) || !bytes.Equal(record, item) {
			before = record
			continue
		}
		if i+1 < k.count {
			n := k.length(i + 1)
			if uint(n) > uint(len(rest)) {
				return 0, false, corruptBucket(k.number, errChanged)
			}
			after = rest[:n]
		}
		between := func(w *[4]uint64) bool {
			return (i == 0 || compareEntries(&entry{s.scheme.digest(before), before}, &entry{*w, item}) < 0) &&
				(i+1 == k.count || compareEntries(&entry{*w, item}, &entry{s.scheme.digest(after), after}) < 0)
		}
		if own := *w; !between(&own) { // w may be another item's, see LookupDigest
			if own = s.scheme.digest(item); own == *w || !between(&own) {
				return 0, false, corruptBucket(k.number, fmt.Errorf("record %d is not in canonical order", i))
			}
		}
		return k.first + uint64(i), true, nil
	}
	return 0, false, s.unchanged(&k, records)
}

// unchanged checks once more what "no" was said from, if that is a mapping:
// what was cut off a file in the meantime reads as zeros to the end of its
// last page. A "yes" needs none of that: it has compared.
func (s *frozenSet) unchanged(k *bucket, records []byte) error {
	if s.data == nil {
		return nil
	}
	own := k.size - 4
	if s.headCheck(k.number, k.data[:own]) != binary.LittleEndian.Uint32(k.data[own:]) || records != nil && crc32.Checksum(records, castagnoli) != k.check {
		return corruptBucket(k.number, errChanged)
	}
	return nil
}

// checkBucket verifies all there is to verify of bucket b by itself, and
// calls yield for its records in order, with slices of the bucket's bytes.
func (s *frozenSet) checkBucket(b uint64, yield func(e entry) bool) (h head, err error) {
	k, err := s.readBucket(b)
	if err != nil {
		return h, err
	}
	rest, err := s.readRecords(&k)
	if err != nil {
		return h, err
	}
	var last entry
	for i := range k.count {
		n := k.length(i)
		if uint(n) > uint(len(rest)) {
			return h, corruptBucket(b, errChanged)
		}
		e := entry{record: rest[:n:n]}
		rest = rest[n:]
		e.words = s.scheme.digest(e.record)
		switch {
		case s.bucket(e.words) != b:
			return h, corruptBucket(b, fmt.Errorf("record %d belongs to bucket %d", i, s.bucket(e.words)))
		case tag(e.words) != k.tags[i]:
			return h, corruptBucket(b, fmt.Errorf("tag of record %d", i))
		case i > 0 && compareEntries(&last, &e) >= 0:
			return h, corruptBucket(b, fmt.Errorf("record %d is not in canonical order", i))
		}
		if !yield(e) {
			return h, errStop
		}
		last = e
	}
	return k.head, nil
}

// errStop ends a walk at the caller's wish.
var errStop = errors.New("stopped")

// checkIndex verifies the index by itself: from 0 to size, in steps that are
// as long as a head at least.
func (s *frozenSet) checkIndex() error {
	const run = 1 << 16
	least := s.headSize(0, 0)
	faults := make([]error, (s.buckets+run-1)/run)
	parallel(cores(), len(faults), func(_, i int) {
		defer recoverFault(mapping.Guard(), &faults[i]) // the index may be mapped
		first := uint64(i) * run
		last := s.offset(first)
		rest := s.index[8*(first+1) : 8*(min(first+run, s.buckets)+1)]
		for b := first; len(rest) >= 8; b, rest = b+1, rest[8:] {
			next := binary.LittleEndian.Uint64(rest)
			if next-last-least > s.size || next > s.size { // too short a step, or one back, wraps around
				faults[i] = fmt.Errorf("%w: index: bucket %d from %d to %d of %d bytes", ErrCorrupt, b, last, next, s.size)
				return
			}
			last = next
		}
	})
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	if first, last := s.offset(0), s.offset(s.buckets); first != 0 || last != s.size {
		return fmt.Errorf("%w: index: buckets from %d to %d of %d bytes", ErrCorrupt, first, last, s.size)
	}
	return nil
}
