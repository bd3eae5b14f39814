package digest

import (
	"crypto/sha256"
	"unsafe"
)

// longest is the longest item that assembly hashes one or two at a time. While
// it runs the garbage collector cannot stop the goroutine, and crypto/sha256
// does not take longer for longer ones.
const longest = 4096

// For the same reason the assembly is given no more than this at a time: some
// ten microseconds' worth if the items are short.
const (
	maxPairs  = 256
	maxGroups = 32 // of sixteen
)

// A SHA256Frame computes SHA-256 of prefix ‖ length ‖ item. It may be used by
// any number of goroutines at a time.
type SHA256Frame struct{ t template }

// NewSHA256Frame returns the frame with this prefix and a length of so many
// bytes, 0 to 8; together they must not exceed 48 bytes, or it panics. Longer
// items than that many bytes can count must not be hashed.
func NewSHA256Frame(prefix []byte, lengthBytes int) SHA256Frame {
	return SHA256Frame{newTemplate(prefix, lengthBytes)}
}

// Sum sets out to the digest of item's frame. (An array that is returned
// goes through memory once more for each call on its way.)
func (f *SHA256Frame) Sum(out *[4]uint64, item []byte) {
	if hasSHA && len(item) <= longest {
		sha256x1(&f.t, unsafe.SliceData(item), len(item), out)
	} else {
		*out = f.sumGeneric(item)
	}
}

// SumBatch sets out[i] to the digest of items[i]'s frame; out is at least as
// long as items. While it goes on it prefetches, for each digest, line
// floor(w[0] · lines / 2^64) of filter, which is so many lines of 64 bytes;
// filter may be nil.
func (f *SHA256Frame) SumBatch(items [][]byte, out [][4]uint64, filter []byte) {
	out = out[:len(items)]
	for len(items) > 0 {
		n := f.sumSome(items, out, filter)
		if n == 0 {
			f.Sum(&out[0], items[0])
			prefetchLine(filter, out[0][0])
			n = 1
		}
		items, out = items[n:], out[n:]
	}
}

// sumSome is SumBatch for as many of the first items as the assembly can take
// side by side. It returns how many, maybe none.
func (f *SHA256Frame) sumSome(items [][]byte, out [][4]uint64, filter []byte) (n int) {
	first, lines := filterOf(filter, &out[0])
	if hasAVX512 && len(items) >= 16 {
		n = 16 * sha256x16(&f.t, &items[0], &out[0], min(len(items)/16, maxGroups), first, lines)
	}
	if hasSHA && n == 0 && len(items) >= 2 {
		pairs := min(len(items)/2, maxPairs)
		if hasAVX512 {
			pairs = min(pairs, 16/2) // then see whether sixteen fit again
		}
		n = 2 * sha256x2(&f.t, 0, &items[0], unsafe.Sizeof(items[0]), &out[0], pairs, first, lines)
	}
	return n
}

// SHA256Each sets out[i] to the digest of item's frame under frames[i]; out is
// at least as long as frames.
func SHA256Each(frames []SHA256Frame, item []byte, out [][4]uint64) {
	out = out[:len(frames)]
	if hasSHA && len(frames) >= 2 && len(item) <= longest {
		first, lines := filterOf(nil, &out[0])
		done := 2 * sha256x2(&frames[0].t, unsafe.Sizeof(frames[0]), &item, 0, &out[0], len(frames)/2, first, lines)
		frames, out = frames[done:], out[done:]
	}
	for i := range frames {
		frames[i].Sum(&out[i], item)
	}
}

// sumGeneric is Sum by crypto/sha256.
func (f *SHA256Frame) sumGeneric(item []byte) [4]uint64 {
	var b [128]byte
	n := f.t.begin(&b, len(item))
	if len(item) <= len(b)-n {
		sum := sha256.Sum256(b[:n+copy(b[n:], item)])
		return words(&sum)
	}
	// The compiler sees through New and these calls: no allocation.
	h := sha256.New()
	h.Write(b[:n])
	h.Write(item)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return words(&sum)
}
