package bloom

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/bits"
	"runtime"

	"github.com/b1cc2673/bloom/internal/mapping"
)

// A Filter is the Bloom filter of a snapshot alone, immutable, for those
// whose records live elsewhere. Its "no" is final, its "maybe" decides
// nothing: [Filter.Confirm] asks the holder of the records.
//
// A Filter is safe for any number of goroutines. A nil or zero Filter answers
// with ErrClosed.
type Filter struct {
	scheme *scheme // nil: never built
	m      uint64  // bits
	k      int     // hashes
	n      uint64  // records that set the bits
	bits   []byte  // bit p is bit p%8, from the least, of byte p/8

	digest  [sha256.Size]byte // of the bits, see sectionDigest
	mapping *mapping.Mapping  // that the bits are in; nil: on the heap
	most    uint64            // bytes that may be allocated for them, if they are mapped
}

// filterBytes is the size of a packed filter of m bits.
func filterBytes(m uint64) uint64 { return m/8 + (m%8+7)/8 }

// setBit sets bit p of a packed filter.
func setBit(packed []byte, p uint64) { packed[p/8] |= 1 << (p % 8) }

// hasBit reports whether bit p of a packed filter is set.
func hasBit(packed []byte, p uint64) bool { return packed[p/8]>>(p%8)&1 == 1 }

func (f *Filter) open() error {
	if f == nil || f.scheme == nil {
		return fmt.Errorf("%w: nil or zero Filter", ErrClosed)
	}
	return nil
}

// has is the filter's answer for an admitted item.
func (f *Filter) has(item []byte) bool {
	if f.scheme.block {
		var w [4]uint64
		f.scheme.digestTo(&w, item)
		return f.hasDigest(&w)
	}
	var words [lanes][4]uint64
	for i := 0; i < f.k; i += lanes {
		some := words[:min(lanes, f.k-i)]
		f.scheme.digests(item, i, some)
		for j := range some {
			if !hasBit(f.bits, f.scheme.position(some[j], f.m)) {
				return false
			}
		}
	}
	return true
}

// hasDigest is has for a v2 digest. It has no branch that depends on a bit:
// one in two of an absent item's bits would be mispredicted. The picks of w1
// are written out, as a loop over them costs a tenth of a lookup.
func (f *Filter) hasDigest(w *[4]uint64) bool {
	base := block(*w, f.m/blockBits) * (blockBits / 8)
	line := (*[blockBits / 8]byte)(f.bits[base : base+blockBits/8])
	p := w[1]
	all := line[p>>3&63] >> (p & 7)
	switch k := f.k; {
	case k >= 7:
		all &= line[p>>57&63] >> (p >> 54 & 7)
		fallthrough
	case k == 6:
		all &= line[p>>48&63] >> (p >> 45 & 7)
		fallthrough
	case k == 5:
		all &= line[p>>39&63] >> (p >> 36 & 7)
		fallthrough
	case k == 4:
		all &= line[p>>30&63] >> (p >> 27 & 7)
		fallthrough
	case k == 3:
		all &= line[p>>21&63] >> (p >> 18 & 7)
		fallthrough
	case k == 2:
		all &= line[p>>12&63] >> (p >> 9 & 7)
	}
	p = w[2]
	for range f.k - 7 {
		all &= line[p>>3&63] >> (p & 7)
		p >>= 9
	}
	return all&1 == 1
}

// insert sets the bits of an item's digests; has never misses what insert
// was given.
func (f *Filter) insert(item []byte, w [4]uint64) {
	if f.scheme.block {
		base := blockBits * block(w, f.m/blockBits)
		for j := range f.k {
			setBit(f.bits, base+pick(w, j))
		}
		return
	}
	for _, p := range f.scheme.positions(item, f.m, f.k) {
		setBit(f.bits, p)
	}
}

// MaybePresent reports whether item may be among the records: false is
// certain, true is not. It costs one digest and one cache line for the v2
// protocols, up to k of each for the others, and allocates nothing.
//
// Errors: ErrItem for what the protocol does not admit, ErrClosed.
func (f *Filter) MaybePresent(item []byte) (maybe bool, err error) {
	if err := f.open(); err != nil {
		return false, err
	}
	if !f.scheme.admits(item) {
		if err := f.scheme.checkItem(item); err != nil {
			return false, err
		}
	}
	if f.mapping != nil {
		defer runtime.KeepAlive(f.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	return f.has(item), nil
}

// Digest computes the digest of item that this filter, and every other of
// the same v2 protocol, seed and key, answers for.
//
// Errors: ErrItem; ErrConfig where the protocol has a digest for each
// position; ErrClosed.
func (f *Filter) Digest(item []byte) (Digest, error) {
	if err := f.open(); err != nil {
		return Digest{}, err
	}
	return f.scheme.digestOf(item)
}

// MaybePresentDigest is [Filter.MaybePresent] for an item that was digested
// before. A digest of another protocol, seed or key is ErrItem.
func (f *Filter) MaybePresentDigest(d Digest) (maybe bool, err error) {
	if err := f.open(); err != nil {
		return false, err
	}
	if err := f.scheme.checkDigest(d); err != nil {
		return false, err
	}
	if f.mapping != nil {
		defer runtime.KeepAlive(f.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	return f.hasDigest(&d.words), nil
}

// Confirm is a confirmed lookup where the records live elsewhere. After a
// "maybe", and only then, it calls holds, which says whether the authority,
// a database say, holds exactly these bytes; its "no" is a false positive.
//
// If holds does not find the item it returns (false, nil), also where its
// database reports that as an error. ExactChecked means that it was asked and
// answered, Duplicate that it said yes.
//
// Nil for ctx or holds is ErrConfig. Beside the errors of [Filter.MaybePresent]
// there are those of ctx, if it is done before holds is called, and those of
// holds itself, wrapped; ExactChecked is false then.
func (f *Filter) Confirm(ctx context.Context, item []byte, holds func(ctx context.Context, item []byte) (bool, error)) (Result, error) {
	if err := checkContext(ctx); err != nil {
		return Result{}, err
	}
	if holds == nil {
		return Result{}, fmt.Errorf("%w: Confirm: holds is nil", ErrConfig)
	}
	maybe, err := f.MaybePresent(item)
	if err != nil || !maybe {
		return Result{}, err
	}
	r := Result{MaybePresent: true}
	if err := ctx.Err(); err != nil {
		return r, while("confirming a candidate", err)
	}
	held, err := holds(ctx, item)
	if err != nil {
		return r, while("confirming a candidate", err)
	}
	r.ExactChecked, r.Duplicate = true, held
	return r, nil
}

// PackedBits returns a copy of the filter's bits: bit 0 is the least
// significant of byte 0, the unused high bits of the last byte are zero. It is
// nil for a nil or zero Filter, for a mapped one above OpenOptions.MaxMemory,
// and where a mapped file has become shorter by a page.
func (f *Filter) PackedBits() []byte {
	if f.open() != nil || f.mapping != nil && uint64(len(f.bits)) > f.most {
		return nil
	}
	packed := make([]byte, len(f.bits))
	if f.mapping == nil {
		copy(packed, f.bits)
	} else if _, err := f.mapping.ReadAt(packed, headerSize); err != nil {
		return nil
	}
	return packed
}

// ones counts the bits that are set, and for the v2 protocols how many
// blocks have how many.
func (f *Filter) ones() (total uint64, blocks [blockBits + 1]uint64, err error) {
	if f.mapping != nil {
		defer runtime.KeepAlive(f.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	if !f.scheme.block {
		for _, b := range f.bits {
			total += uint64(bits.OnesCount8(b))
		}
		return total, blocks, nil
	}
	for at := 0; at < len(f.bits); at += blockBits / 8 {
		ones := 0
		for _, b := range f.bits[at : at+blockBits/8] {
			ones += bits.OnesCount8(b)
		}
		total += uint64(ones)
		blocks[ones]++
	}
	return total, blocks, nil
}
