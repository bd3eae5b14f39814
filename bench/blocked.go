package main

import "github.com/b1cc2673/bloom"

// Blocked stands in for github.com/greatroar/blobloom, which could not be had
// where this was written: a Bloom filter of 512-bit blocks under one 64-bit
// hash, as blobloom is, but not its code, nor to be quoted as its speed. The
// block model is that of this library's own protocols, and so is the sizing.
type blocked struct {
	blocks [][8]uint64
	k      int
}

func newBlocked(n int) *blocked {
	c, err := bloom.Config{FPRate: rate}.Resolve(uint64(n))
	must(err)
	return &blocked{make([][8]uint64, (c.Bits+511)/512), c.Hashes}
}

// The low half of the hash chooses the block; both halves step through its
// bits, by enhanced double hashing.
func (f *blocked) block(h uint64) *[8]uint64 {
	return &f.blocks[uint64(uint32(h))*uint64(len(f.blocks))>>32]
}

func (f *blocked) add(h uint64) {
	b, at, step := f.block(h), uint32(h>>32), uint32(h)
	for i := range uint32(f.k) {
		b[at/64%8] |= 1 << (at % 64)
		at += step
		step += i
	}
}

func (f *blocked) has(h uint64) bool {
	b, at, step := f.block(h), uint32(h>>32), uint32(h)
	for i := range uint32(f.k) {
		if b[at/64%8]&(1<<(at%64)) == 0 {
			return false
		}
		at += step
		step += i
	}
	return true
}
