package digest

import (
	"encoding/binary"
	"math/bits"
)

// A BLAKE2b is a running BLAKE2b hash (RFC 7693), with the key and the
// personalisation that x/crypto/blake2b cannot give without an allocation a
// message. A copy goes on from where the original stood, so the state after
// a key block is computed once and copied for every message.
type BLAKE2b struct {
	h   [8]uint64
	t   uint64    // bytes compressed; messages of 2^64 bytes and more do not exist
	buf [128]byte // the block not yet compressed: the last one is treated apart
	n   int       // bytes in buf
}

var blake2bIV = [8]uint64{
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
}

// isLast marks a message's last block.
const isLast = ^uint64(0)

// NewBLAKE2b starts a hash of size bytes (1 to 64) with a key of at most 64
// bytes, which may be empty, and a personalisation of at most 16.
func NewBLAKE2b(size int, key []byte, personal string) BLAKE2b {
	d := BLAKE2b{h: blake2bIV}
	d.h[0] ^= 0x01010000 ^ uint64(len(key))<<8 ^ uint64(size)
	var p [16]byte
	copy(p[:], personal)
	d.h[6] ^= binary.LittleEndian.Uint64(p[:8])
	d.h[7] ^= binary.LittleEndian.Uint64(p[8:])
	if len(key) > 0 {
		d.n = len(d.buf)
		copy(d.buf[:], key)
	}
	return d
}

// Write appends p to the message.
func (d *BLAKE2b) Write(p []byte) {
	if len(p) > len(d.buf)-d.n {
		if d.n > 0 {
			p = p[copy(d.buf[d.n:], p):]
			d.n = 0
			d.t += uint64(len(d.buf))
			compress(&d.h, &d.buf, d.t, 0)
		}
		for len(p) > len(d.buf) {
			d.t += uint64(len(d.buf))
			compress(&d.h, (*[128]byte)(p), d.t, 0)
			p = p[len(d.buf):]
		}
	}
	d.n += copy(d.buf[d.n:], p)
}

// Sum ends the message and returns the first four words of the state. A digest
// of fewer than 32 bytes is that many bytes of theirs.
func (d *BLAKE2b) Sum() [4]uint64 {
	clear(d.buf[d.n:])
	d.t += uint64(d.n)
	compress(&d.h, &d.buf, d.t, isLast)
	return words64(&d.h)
}

// flush compresses a key block that is waiting to see whether anything comes
// after it.
func (d *BLAKE2b) flush() {
	if d.n == len(d.buf) {
		d.t += uint64(len(d.buf))
		compress(&d.h, &d.buf, d.t, 0)
		d.n = 0
	}
}

func words64(h *[8]uint64) [4]uint64 {
	return [4]uint64{
		bits.ReverseBytes64(h[0]), bits.ReverseBytes64(h[1]),
		bits.ReverseBytes64(h[2]), bits.ReverseBytes64(h[3]),
	}
}

// A BLAKE2bFrame computes BLAKE2b of prefix ‖ length ‖ item. It may be used by
// any number of goroutines at a time.
type BLAKE2bFrame struct {
	t  template
	h  [8]uint64    // the state that frames start from
	h4 [8][4]uint64 // the same in four lanes
	n  uint64       // the bytes it has seen: those of a key block, or none
}

// NewBLAKE2bFrame returns the frame with this prefix and a length of so many
// bytes, 0 to 8; together they must not exceed 48 bytes, or it panics. Longer
// items than that many bytes can count must not be hashed. The hash is what
// [NewBLAKE2b] returned.
func NewBLAKE2bFrame(start BLAKE2b, prefix []byte, lengthBytes int) BLAKE2bFrame {
	start.flush()
	return BLAKE2bFrame{newTemplate(prefix, lengthBytes), start.h, fourfold(&start.h), start.t}
}

// Sum sets out to the digest of item's frame.
func (f *BLAKE2bFrame) Sum(out *[4]uint64, item []byte) {
	if n := f.t.off + len(item); n <= 128 {
		h := f.h
		var block [128]byte
		if hasAVX2 {
			blake2bBegin(&block, &f, &item, 1)
		} else {
			copy(block[f.t.begin(&block, len(item)):], item)
		}
		compress(&h, &block, f.n+uint64(n), isLast)
		*out = words64(&h)
		return
	}
	d := BLAKE2b{h: f.h, t: f.n}
	d.n = f.t.begin(&d.buf, len(item))
	d.Write(item)
	*out = d.Sum()
}

// SumBatch sets out[i] to the digest of items[i]'s frame; out is at least as
// long as items. It prefetches from filter like [SHA256Frame.SumBatch].
func (f *BLAKE2bFrame) SumBatch(items [][]byte, out [][4]uint64, filter []byte) {
	out = out[:len(items)]
	if hasAVX2 {
		var s lanes
		for len(items) > 1 {
			n := min(len(items), 4)
			var four [4][]byte
			for l := range n { // with copy they would escape
				four[l] = items[l]
			}
			s.sum(&[4]*BLAKE2bFrame{f, f, f, f}, &four)
			for l := range n {
				out[l] = s.out[l]
				prefetchLine(filter, out[l][0])
			}
			items, out = items[n:], out[n:]
		}
	}
	for i, item := range items {
		f.Sum(&out[i], item)
		prefetchLine(filter, out[i][0])
	}
}

// BLAKE2bEach sets out[i] to the digest of item's frame under frames[i]; out is
// at least as long as frames.
func BLAKE2bEach(frames []BLAKE2bFrame, item []byte, out [][4]uint64) {
	out = out[:len(frames)]
	if hasAVX2 {
		var s lanes
		for len(frames) > 1 {
			n := min(len(frames), 4)
			var four [4]*BLAKE2bFrame
			for l := range four {
				four[l] = &frames[min(l, n-1)]
			}
			s.sum(&four, &[4][]byte{item, item, item, item})
			copy(out, s.out[:n])
			frames, out = frames[n:], out[n:]
		}
	}
	for i := range frames {
		frames[i].Sum(&out[i], item)
	}
}

// BLAKE2bCounted sets out[i] to the digest of item ‖ u8 first+i, for an item
// of at most 127 bytes. The hash is what [NewBLAKE2b] returned.
func BLAKE2bCounted(start BLAKE2b, item []byte, first int, out [][4]uint64) {
	start.flush()
	n := copy(start.buf[:127], item)
	clear(start.buf[n:])
	t := start.t + uint64(n) + 1
	i := 0
	if hasAVX2 && len(out) > 1 {
		s := lanes{
			t:    [4]uint64{t, t, t, t},
			last: [4]uint64{isLast, isLast, isLast, isLast},
			buf:  [4][128]byte{start.buf, start.buf, start.buf, start.buf},
		}
		h, m := fourfold(&start.h), s.blocks()
		for ; i < len(out)-1; i += 4 {
			for l := range s.buf {
				s.buf[l][n] = byte(first + i + l)
			}
			blake2bLanes(&s, &h, &m)
			for l := range min(4, len(out)-i) {
				out[i+l] = s.words(l)
			}
		}
	}
	for ; i < len(out); i++ {
		h := start.h
		start.buf[n] = byte(first + i)
		compress(&h, &start.buf, t, isLast)
		out[i] = words64(&h)
	}
}

// lanes is four hashes in step: word i of lane l is h[i][l].
type lanes struct {
	h       [8][4]uint64
	t, last [4]uint64
	buf     [4][128]byte
	out     [4][4]uint64
}

func fourfold(h *[8]uint64) (h4 [8][4]uint64) {
	for i, x := range h {
		h4[i] = [4]uint64{x, x, x, x}
	}
	return h4
}

func (s *lanes) blocks() [4]*[128]byte {
	return [4]*[128]byte{&s.buf[0], &s.buf[1], &s.buf[2], &s.buf[3]}
}

// words is what words64 is for one lane.
func (s *lanes) words(l int) [4]uint64 {
	return [4]uint64{
		bits.ReverseBytes64(s.h[0][l]), bits.ReverseBytes64(s.h[1][l]),
		bits.ReverseBytes64(s.h[2][l]), bits.ReverseBytes64(s.h[3][l]),
	}
}

// sum sets s.out to the digests of the four items' frames. A lane that has come
// to its end idles until the longest has.
func (s *lanes) sum(frames *[4]*BLAKE2bFrame, items *[4][]byte) {
	blake2bBegin(&s.buf[0], &frames[0], &items[0], len(items))
	h, m := &frames[0].h4, s.blocks()
	var next [4]int // where in the item the next block starts
	for l, f := range frames {
		if f.h != frames[0].h {
			h = &s.h
		}
		next[l] = 128 - f.t.off
		s.t[l], s.last[l] = f.n+128, 0
		if after := len(items[l]) - next[l]; after <= 0 {
			s.t[l] += uint64(after) // negative
			s.last[l] = isLast
		}
	}
	if h == &s.h {
		for l, f := range frames {
			for i := range s.h {
				s.h[i][l] = f.h[i]
			}
		}
	}
	for busy := 4; ; {
		blake2bLanes(s, h, &m)
		h = &s.h
		for l, item := range items {
			switch {
			case next[l] < 0:
			case s.last[l] != 0:
				s.out[l] = s.words(l)
				next[l] = -1
				busy--
			default:
				item = item[next[l]:]
				next[l] += 128
				if len(item) > 128 {
					m[l] = (*[128]byte)(item)
					s.t[l] += 128
				} else {
					m[l] = &s.buf[l]
					clear(s.buf[l][copy(s.buf[l][:], item):])
					s.t[l] += uint64(len(item))
					s.last[l] = isLast
				}
			}
		}
		if busy == 0 {
			return
		}
	}
}

// compress is the function F of RFC 7693, section 3.2; last is isLast or
// zero. Written out round by round it is a quarter faster than with
// a table of the permutations, and as fast as x/crypto's assembly.
func compress(h *[8]uint64, block *[128]byte, t, last uint64) {
	m := func(i int) uint64 { return binary.LittleEndian.Uint64(block[8*i:]) }
	v0, v1, v2, v3 := h[0], h[1], h[2], h[3]
	v4, v5, v6, v7 := h[4], h[5], h[6], h[7]
	v8, v9, v10, v11 := blake2bIV[0], blake2bIV[1], blake2bIV[2], blake2bIV[3]
	v12, v13, v14, v15 := blake2bIV[4]^t, blake2bIV[5], blake2bIV[6]^last, blake2bIV[7]

	// Round 1.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(0), m(1))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(2), m(3))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(4), m(5))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(6), m(7))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(8), m(9))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(10), m(11))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(12), m(13))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(14), m(15))

	// Round 2.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(14), m(10))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(4), m(8))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(9), m(15))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(13), m(6))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(1), m(12))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(0), m(2))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(11), m(7))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(5), m(3))

	// Round 3.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(11), m(8))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(12), m(0))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(5), m(2))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(15), m(13))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(10), m(14))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(3), m(6))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(7), m(1))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(9), m(4))

	// Round 4.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(7), m(9))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(3), m(1))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(13), m(12))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(11), m(14))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(2), m(6))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(5), m(10))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(4), m(0))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(15), m(8))

	// Round 5.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(9), m(0))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(5), m(7))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(2), m(4))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(10), m(15))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(14), m(1))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(11), m(12))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(6), m(8))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(3), m(13))

	// Round 6.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(2), m(12))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(6), m(10))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(0), m(11))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(8), m(3))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(4), m(13))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(7), m(5))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(15), m(14))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(1), m(9))

	// Round 7.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(12), m(5))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(1), m(15))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(14), m(13))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(4), m(10))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(0), m(7))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(6), m(3))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(9), m(2))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(8), m(11))

	// Round 8.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(13), m(11))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(7), m(14))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(12), m(1))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(3), m(9))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(5), m(0))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(15), m(4))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(8), m(6))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(2), m(10))

	// Round 9.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(6), m(15))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(14), m(9))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(11), m(3))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(0), m(8))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(12), m(2))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(13), m(7))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(1), m(4))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(10), m(5))

	// Round 10.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(10), m(2))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(8), m(4))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(7), m(6))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(1), m(5))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(15), m(11))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(9), m(14))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(3), m(12))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(13), m(0))

	// Round 11.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(0), m(1))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(2), m(3))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(4), m(5))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(6), m(7))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(8), m(9))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(10), m(11))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(12), m(13))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(14), m(15))

	// Round 12.
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m(14), m(10))
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m(4), m(8))
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m(9), m(15))
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m(13), m(6))
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m(1), m(12))
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m(0), m(2))
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m(11), m(7))
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m(5), m(3))

	h[0] ^= v0 ^ v8
	h[1] ^= v1 ^ v9
	h[2] ^= v2 ^ v10
	h[3] ^= v3 ^ v11
	h[4] ^= v4 ^ v12
	h[5] ^= v5 ^ v13
	h[6] ^= v6 ^ v14
	h[7] ^= v7 ^ v15
}

func mix(a, b, c, d, x, y uint64) (uint64, uint64, uint64, uint64) {
	a += b + x
	d = bits.RotateLeft64(d^a, -32)
	c += d
	b = bits.RotateLeft64(b^c, -24)
	a += b + y
	d = bits.RotateLeft64(d^a, -16)
	c += d
	b = bits.RotateLeft64(b^c, -63)
	return a, b, c, d
}
