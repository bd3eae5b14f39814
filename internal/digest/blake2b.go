// Package digest holds the hash functions in the shapes that package bloom
// needs: values that are copied instead of allocated.
package digest

import (
	"encoding/binary"
	"math/bits"
)

// BLAKE2b is a running BLAKE2b hash (RFC 7693), with the key and the
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
		var block [128]byte
		copy(block[:], key)
		d.Write(block[:])
	}
	return d
}

// Write appends p to the message.
func (d *BLAKE2b) Write(p []byte) {
	if d.n+len(p) > len(d.buf) {
		if d.n > 0 {
			k := copy(d.buf[d.n:], p)
			d.t += uint64(len(d.buf))
			d.compress(&d.buf, 0)
			d.n, p = 0, p[k:]
		}
		for len(p) > len(d.buf) {
			d.t += uint64(len(d.buf))
			d.compress((*[128]byte)(p), 0)
			p = p[128:]
		}
	}
	d.n += copy(d.buf[d.n:], p)
}

// Sum ends the message and returns the first four words of the digest, each
// read as a little-endian number as BLAKE2b has it.
func (d *BLAKE2b) Sum() [4]uint64 {
	clear(d.buf[d.n:])
	d.t += uint64(d.n)
	d.compress(&d.buf, ^uint64(0))
	return [4]uint64(d.h[:4])
}

var blake2bSigma = [10][16]byte{
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}

// compress is the function F of RFC 7693, section 3.2; last is all ones for
// the last block.
func (d *BLAKE2b) compress(block *[128]byte, last uint64) {
	var m [16]uint64
	for i := range m {
		m[i] = binary.LittleEndian.Uint64(block[8*i:])
	}
	v0, v1, v2, v3 := d.h[0], d.h[1], d.h[2], d.h[3]
	v4, v5, v6, v7 := d.h[4], d.h[5], d.h[6], d.h[7]
	v8, v9, v10, v11 := blake2bIV[0], blake2bIV[1], blake2bIV[2], blake2bIV[3]
	v12, v13, v14, v15 := blake2bIV[4]^d.t, blake2bIV[5], blake2bIV[6]^last, blake2bIV[7]
	for i := range 12 {
		s := &blake2bSigma[i%10]
		v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[s[0]&15], m[s[1]&15])
		v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[s[2]&15], m[s[3]&15])
		v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[s[4]&15], m[s[5]&15])
		v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[s[6]&15], m[s[7]&15])
		v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[s[8]&15], m[s[9]&15])
		v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[s[10]&15], m[s[11]&15])
		v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[s[12]&15], m[s[13]&15])
		v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[s[14]&15], m[s[15]&15])
	}
	d.h[0] ^= v0 ^ v8
	d.h[1] ^= v1 ^ v9
	d.h[2] ^= v2 ^ v10
	d.h[3] ^= v3 ^ v11
	d.h[4] ^= v4 ^ v12
	d.h[5] ^= v5 ^ v13
	d.h[6] ^= v6 ^ v14
	d.h[7] ^= v7 ^ v15
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
