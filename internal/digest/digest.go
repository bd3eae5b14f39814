// Package digest hashes short messages fast: SHA-256 and BLAKE2b of framed
// items, one at a time and side by side.
//
// A frame is
//
//	prefix ‖ length ‖ item
//
// with a prefix that is the same for every item, and the item's length as a
// big-endian number of so many bytes. What does not depend on the item is
// worked out once, in a [SHA256Frame] or a [BLAKE2bFrame].
//
// Digests are returned as words: w[0] is the first eight bytes of the digest
// read as a big-endian number, and so on.
//
// On amd64 the work is done in assembly where the processor has the
// instructions: SHA-256 with the SHA extensions and AVX2, BLAKE2b four at a
// time with AVX2, and both faster still in batches with AVX-512. Elsewhere, and
// under the build tag purego, it is done in Go; the same Go code is what tests
// hold the assembly against. Hashing allocates nothing, and no item is kept or
// escapes.
package digest

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// maxHead bounds prefix and length together: whatever the item is, they fit
// the first block of either hash with room to spare.
const maxHead = 48

// A template is the first 64 bytes of a frame in the form that suits the
// assembly: what to merge in, what to leave of the item's surroundings, and
// where to put the bytes of its length.
type template struct {
	head [64]byte // the prefix, then zeros
	body [64]byte // ff where the item goes
	lens [64]byte // which byte of the length goes here, from the low end; 80: none
	off  int      // where the item starts
	size int      // of the length, in bytes
}

func newTemplate(prefix []byte, lengthBytes int) template {
	t := template{off: len(prefix) + lengthBytes, size: lengthBytes}
	if lengthBytes < 0 || lengthBytes > 8 || t.off > maxHead {
		panic("digest: prefix or length too long for a frame")
	}
	copy(t.head[:], prefix)
	for i := range t.lens {
		t.lens[i] = 0x80
		if i >= t.off {
			t.body[i] = 0xff
		} else if i >= len(prefix) {
			t.lens[i] = byte(t.off - 1 - i)
		}
	}
	return t
}

// begin writes what precedes an item of n bytes to b and returns its length.
func (t *template) begin(b *[128]byte, n int) int {
	copy(b[:], t.head[:])
	// What this writes behind the length is the item's place.
	binary.BigEndian.PutUint64(b[t.off-t.size:], uint64(n)<<(64-8*t.size))
	return t.off
}

// A line is what a filter is made of: 64 bytes, one cache line.
const line = 64

// prefetchLine starts loading the line of filter that w0 selects.
func prefetchLine(filter []byte, w0 uint64) {
	if n := uint64(len(filter) / line); n != 0 {
		i, _ := bits.Mul64(w0, n)
		prefetch(&filter[line*i])
	}
}

// filterOf returns what the assembly wants to know of a filter. Without one it
// points at none, so that the assembly can prefetch in any case.
func filterOf(filter []byte, none *[4]uint64) (first *byte, lines uint64) {
	if len(filter) < line {
		return (*byte)(unsafe.Pointer(none)), 0
	}
	return &filter[0], uint64(len(filter) / line)
}

// Prefetch starts loading the cache lines of b[at] and b[at+span] for each
// offset, so that reading them later does not wait for memory one by one. It is
// advice: offsets may be out of range, and on some machines it does nothing.
func Prefetch(b []byte, offsets []uint64, span int) {
	if len(b) > 0 && len(offsets) > 0 {
		prefetchAll(&b[0], &offsets[0], len(offsets), uintptr(span))
	}
}

// PrefetchBehind starts loading the three cache lines behind that of p, for
// someone who is about to read p's and then go on from what it says.
func PrefetchBehind(p *byte) { prefetchBehind(p) }

// words reads the first 32 bytes of a digest.
func words(sum *[32]byte) (w [4]uint64) {
	for i := range w {
		w[i] = binary.BigEndian.Uint64(sum[8*i:])
	}
	return w
}

// Bytes returns the bytes of s without a copy. They must not be written to.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
