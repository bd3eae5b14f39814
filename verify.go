package bloom

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/b1cc2673/bloom/internal/mapping"
)

// Verify recomputes all that can be: every checksum and digest, every record's
// digest, tag, place and order, and the filter bit for bit, its positions by
// the reference (see [ReferencePositions]). It names the first fault and where
// it is. It uses all cores and, beside the buckets it is at, as much memory
// as the filter has and a little for each bucket. It takes longer than building
// did. Errors: ErrCorrupt, ErrClosed, ErrTooLarge where a file needs more than
// [OpenOptions] allow, and those of the reader.
func (s *Snapshot) Verify() error { return s.VerifyContext(context.Background()) }

// VerifyContext is [Snapshot.Verify] that stops with ctx's error when ctx is
// done.
func (s *Snapshot) VerifyContext(ctx context.Context) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	if s.file.source != nil {
		l, _ := s.headerOf().layout()
		if err := allow(l.filter+s.set.buckets/8, s.set.most); err != nil { // for fresh and spans
			return err
		}
	}
	return s.verify(ctx, reference)
}

// Verify compares the filter's bits, all that it answers from, with their
// digest. Errors: ErrCorrupt, ErrClosed.
func (f *Filter) Verify() error {
	if err := f.open(); err != nil {
		return err
	}
	if f.mapping == nil {
		if sectionDigest(f.bits) != f.digest {
			return fmt.Errorf("%w: the filter does not match its digest", ErrCorrupt)
		}
		return f.checkSpare()
	}
	sum, _, err := digestAt(context.Background(), f.mapping, headerSize, uint64(len(f.bits)))
	if err != nil {
		return err
	}
	if sum != f.digest {
		return fmt.Errorf("%w: the filter does not match its digest", ErrCorrupt)
	}
	return f.checkSpareMapped()
}

func (f *Filter) checkSpareMapped() (err error) {
	defer runtime.KeepAlive(f.mapping)
	defer recoverFault(mapping.Guard(), &err)
	return f.checkSpare()
}

// digestAt is sectionDigest, and appendChecks, for a section in a source. What
// it holds grows with what it has read, and not with what size says.
func digestAt(ctx context.Context, r io.ReaderAt, at, size uint64) (sum [sha256.Size]byte, checks []byte, err error) {
	const window = 32 // chunks
	h := sha256.New()
	var sums [window][sha256.Size]byte
	var checksOf [window]uint32
	var errs [window]error
	buffers := make([][]byte, cores())
	for done := uint64(0); done < size; done += window * sectionChunk {
		rest := size - done
		n := int(min(window, (rest+sectionChunk-1)/sectionChunk))
		parallel(len(buffers), n, func(worker, i int) {
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			if buffers[worker] == nil {
				buffers[worker] = make([]byte, min(size, sectionChunk))
			}
			offset := uint64(i) * sectionChunk
			b := buffers[worker][:min(sectionChunk, rest-offset)]
			if errs[i] = readFullAt(r, b, int64(at+done+offset)); errs[i] == nil {
				sums[i], checksOf[i] = sha256.Sum256(b), crc32.Checksum(b, castagnoli)
			}
		})
		for i := range n {
			if errs[i] != nil {
				return sum, nil, reading(errs[i])
			}
			h.Write(sums[i][:])
			checks = binary.LittleEndian.AppendUint32(checks, checksOf[i])
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), checks, nil
}

// A road computes the positions of a record: production's or the reference's.
type road func(f *Filter, e entry) ([]uint64, error)

func production(f *Filter, e entry) ([]uint64, error) {
	return f.scheme.positions(e.record, f.m, f.k), nil
}

func reference(f *Filter, e entry) ([]uint64, error) {
	return ReferencePositions(Config{
		Protocol: f.scheme.which, Bits: f.m, Hashes: f.k, Seed: f.scheme.seed, Key: f.scheme.hidden.key,
	}, e.record)
}

// verify is what Verify and Read do, by their own roads.
func (s *Snapshot) verify(ctx context.Context, positions road) error {
	if err := s.verifySections(ctx); err != nil {
		return err
	}
	if err := s.verifyIndex(); err != nil {
		return err
	}
	fresh := make([]uint32, (s.filter.m+31)/32)
	if err := s.verifyBuckets(ctx, fresh, positions); err != nil {
		return err
	}
	return s.verifyFilter(fresh)
}

// verifySections compares each section, as it is now, with the header.
func (s *Snapshot) verifySections(ctx context.Context) error {
	h := s.headerOf()
	l, _ := h.layout()
	var allChecks []byte
	for _, c := range []struct {
		name     string
		held     []byte
		at, size uint64
		want     [sha256.Size]byte
		checked  bool
	}{
		{"filter", s.filter.bits, headerSize, l.filter, h.filter, true},
		{"index", s.set.index, l.index, l.indexLen, h.index, true},
		{"buckets", s.set.data, l.buckets, h.setBytes, h.set, false},
	} {
		r := s.file.source
		if r == nil {
			r, c.at = bytes.NewReader(c.held), 0
		}
		sum, checks, err := digestAt(ctx, r, c.at, c.size)
		if err != nil {
			return err
		}
		if sum != c.want {
			return fmt.Errorf("%w: the section %s does not match its digest", ErrCorrupt, c.name)
		}
		if c.checked {
			allChecks = append(allChecks, checks...)
		}
	}
	r := s.file.source
	if r == nil {
		return nil
	}
	b := make([]byte, headerSize)
	if err := readFullAt(r, b, 0); err != nil {
		return reading(err)
	}
	if !bytes.Equal(b, h.append(nil)) {
		return fmt.Errorf("%w: the header has changed", ErrCorrupt)
	}
	b = make([]byte, l.checksLen)
	if err := readFullAt(r, b, int64(l.checks)); err != nil {
		return reading(err)
	}
	if !bytes.Equal(b, allChecks) {
		return fmt.Errorf("%w: filter and index do not match their checksums", ErrCorrupt)
	}
	for _, gap := range [][2]uint64{{headerSize + l.filter, l.index}, {l.index + l.indexLen, l.checks}, {l.checks + l.checksLen, l.buckets}} {
		if err := zeros(r, gap[0], gap[1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshot) verifyIndex() (err error) {
	defer runtime.KeepAlive(s.file)
	defer recoverFault(mapping.Guard(), &err)
	if err := s.filter.checkSpare(); err != nil {
		return err
	}
	return s.set.checkIndex()
}

// verifyBuckets checks every bucket and that ordinals go on from one to the
// next, and sets the positions of all records in fresh.
func (s *Snapshot) verifyBuckets(ctx context.Context, fresh []uint32, positions road) error {
	const run = 256 // buckets
	n := int((s.set.buckets + run - 1) / run)
	type span struct{ first, end uint64 } // ordinals
	spans, errs := make([]span, n), make([]error, n)
	var failed atomic.Bool
	parallel(cores(), n, func(_, i int) {
		if failed.Load() {
			return
		}
		spans[i].first, spans[i].end, errs[i] = s.verifyRun(ctx, uint64(i)*run, min(s.set.buckets, uint64(i+1)*run), fresh, positions)
		if errs[i] != nil {
			failed.Store(true)
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	next := uint64(0)
	for i, span := range spans {
		if span.first != next {
			return corruptBucket(uint64(i)*run, fmt.Errorf("first ordinal is %d, not %d", span.first, next))
		}
		next = span.end
	}
	if next != s.set.n {
		return fmt.Errorf("%w: %d records, and the header says %d", ErrCorrupt, next, s.set.n)
	}
	return nil
}

func (s *Snapshot) verifyRun(ctx context.Context, from, to uint64, fresh []uint32, positions road) (first, next uint64, err error) {
	defer runtime.KeepAlive(s.file)
	defer recoverFault(mapping.Guard(), &err)
	for b := from; b < to; b++ {
		if err := ctx.Err(); err != nil {
			return 0, 0, fmt.Errorf("bloom: verifying: %w", err)
		}
		h, err := s.set.checkBucket(b, func(e entry) bool {
			if s.filter.scheme.checkItem(e.record) != nil {
				return false
			}
			p, err := positions(s.filter, e)
			for _, p := range p {
				atomic.OrUint32(&fresh[p/32], 1<<(p%32))
			}
			return err == nil
		})
		if err == errStop {
			err = corruptBucket(b, fmt.Errorf("a record that %s does not admit", s.filter.scheme.name))
		}
		if err != nil {
			return 0, 0, err
		}
		if b == from {
			first, next = h.first, h.first
		}
		if h.first != next {
			return 0, 0, corruptBucket(b, fmt.Errorf("first ordinal is %d, not %d", h.first, next))
		}
		next += uint64(h.count)
	}
	return first, next, nil
}

// verifyFilter compares the filter with the bits that the records set.
func (s *Snapshot) verifyFilter(fresh []uint32) (err error) {
	defer runtime.KeepAlive(s.file)
	defer recoverFault(mapping.Guard(), &err)
	for i, want := range fresh {
		var word [4]byte
		copy(word[:], s.filter.bits[4*i:])
		if differ := binary.LittleEndian.Uint32(word[:]) ^ want; differ != 0 {
			bit := bits.TrailingZeros32(differ)
			return fmt.Errorf("%w: filter: bit %d is %t, and by the records it is %t",
				ErrCorrupt, 32*uint64(i)+uint64(bit), want>>bit&1 == 0, want>>bit&1 == 1)
		}
	}
	return nil
}
