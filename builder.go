package bloom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Building is one sort. Records are digested as they come and put on one of
// 256 piles by the top bits of the digest's first word; each pile is sorted
// by itself, duplicates fall out, and what is left, read in order, is the
// order of the filter's blocks and of the set's buckets.

// mostMemory bounds what a snapshot built in memory may hold, in bytes: 16
// GiB, or 1 GiB where an address has 32 bits.
const mostMemory = 1 << (30 + 4*(^uint(0)>>63))

const (
	pileBits   = 8
	batchBytes = 1 << 18
	chunkBytes = 1 << 16 // an offset in a chunk is 16 bits, see ref
)

// An encoded record on a pile: four words, length, bytes.
const recordOverhead = 4*8 + 4

func appendEntry(dst []byte, e entry) []byte {
	for _, w := range e.words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.record)))
	return append(dst, e.record...)
}

func readEntry(b []byte) (e entry, rest []byte) {
	for i := range e.words {
		e.words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	end := recordOverhead + int(binary.LittleEndian.Uint32(b[32:]))
	e.record = b[recordOverhead:end:end]
	return e, b[end:]
}

// compareEntries is the canonical order: the whole digest, then the bytes.
func compareEntries(a, b entry) int {
	for i := range a.words {
		if c := cmp.Compare(a.words[i], b.words[i]); c != 0 {
			return c
		}
	}
	return bytes.Compare(a.record, b.record)
}

// A batch is records that wait for a worker.
type batch struct {
	data []byte
	ends []int
}

// A pile is encoded records in the order of their coming.
type pile [][]byte

func (p *pile) add(e entry) {
	size := recordOverhead + len(e.record)
	last := len(*p) - 1
	if last < 0 || cap((*p)[last])-len((*p)[last]) < size {
		next := 1 << 10
		if last >= 0 {
			next = min(2*cap((*p)[last]), chunkBytes)
		}
		*p = append(*p, make([]byte, 0, max(next, size)))
		last++
	}
	(*p)[last] = appendEntry((*p)[last], e)
}

// A sorter is one worker's piles.
type sorter struct {
	piles [1 << pileBits]pile
}

// take digests a batch and puts its records on 2^topBits piles.
func (s *sorter) take(set *scheme, b *batch, topBits int) {
	start := 0
	for _, end := range b.ends {
		e := entry{record: b.data[start:end]}
		e.words = set.digest(e.record, 0)
		s.piles[e.words[0]>>(64-topBits)].add(e)
		start = end
	}
}

// A builder turns records into the sections of a snapshot.
type builder struct {
	cfg   Config // checked; Bits and Hashes may be zero
	set   *scheme
	limit uint64

	records uint64 // so far, repeats included
	bytes   uint64 // they take on the piles
	batch   *batch
	idle    chan *sorter
	sorters []*sorter
	working sync.WaitGroup
}

func newBuilder(cfg Config) (*builder, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	// Copies, as they are used after New has begun to call the caller's code.
	cfg.Seed = append([]byte(nil), cfg.Seed...)
	if cfg.Key != nil {
		cfg.Key = append([]byte{}, cfg.Key...)
	}
	return &builder{cfg: cfg, set: newScheme(cfg).setScheme(), limit: mostMemory, batch: new(batch)}, nil
}

// add copies a record. It is a function for the sake of its type parameter.
func add[T ~[]byte | ~string](b *builder, record T) error {
	p := &protocols[b.cfg.Protocol]
	if b.records == p.mostRecords {
		return fmt.Errorf("%w: more than %d records, repeats included; %s takes no more", ErrTooLarge, p.mostRecords, p.name)
	}
	size := recordOverhead + uint64(len(record))
	if size > b.limit-b.bytes {
		return fmt.Errorf("%w: record %d: with %d bytes for each, the records pass %d bytes", ErrTooLarge, b.records, recordOverhead, b.limit)
	}
	start := len(b.batch.data)
	b.batch.data = append(b.batch.data, record...)
	if err := p.checkItem(b.batch.data[start:]); err != nil {
		return fmt.Errorf("%w (record %d)", err, b.records)
	}
	b.batch.ends = append(b.batch.ends, len(b.batch.data))
	b.records++
	b.bytes += size
	if len(b.batch.data) >= batchBytes || len(b.batch.ends) >= batchBytes/16 {
		b.dispatch()
	}
	return nil
}

// dispatch hands the batch to a worker, and waits for one if all are busy.
func (b *builder) dispatch() {
	if b.idle == nil {
		b.idle = make(chan *sorter, runtime.GOMAXPROCS(0))
		for range cap(b.idle) {
			s := new(sorter)
			b.sorters = append(b.sorters, s)
			b.idle <- s
		}
	}
	s, full := <-b.idle, b.batch
	b.batch = new(batch)
	b.working.Go(func() {
		s.take(b.set, full, pileBits)
		b.idle <- s
	})
}

// build ends the builder.
func (b *builder) build() (*Snapshot, error) {
	topBits := pileBits
	if b.sorters == nil { // a small set is not worth a goroutine
		topBits = 0
		b.sorters = []*sorter{new(sorter)}
		b.sorters[0].take(b.set, b.batch, topBits)
	} else {
		b.dispatch()
		b.working.Wait()
	}
	b.batch = nil
	parts := make([]part, 1<<topBits)
	parallel(len(parts), func(i int) {
		var p pile
		for _, s := range b.sorters {
			p = append(p, s.piles[i]...)
			s.piles[i] = nil
		}
		parts[i] = sortPile(p, topBits)
	})
	var n, size uint64
	for i := range parts {
		n += parts[i].count
		size += uint64(len(parts[i].data))
	}
	cfg, err := b.cfg.Resolve(n)
	if err != nil {
		return nil, err
	}
	if cfg.Bits/8 > b.limit-min(size, b.limit) {
		return nil, fmt.Errorf("%w: a filter of %d bytes and records of %d pass %d", ErrTooLarge, cfg.Bits/8, size, b.limit)
	}
	f := &Filter{scheme: newScheme(cfg), m: cfg.Bits, k: cfg.Hashes, n: n, bits: make([]byte, (cfg.Bits+7)/8)}
	f.fill(parts)
	f.digest = sectionDigest(f.bits)
	set := newFrozenSet(n, f.salt())
	set.scheme = b.set
	set.fill(parts)
	return &Snapshot{filter: f, set: set, file: new(file)}, nil
}

// parallel calls do for 0 to n-1 on all cores and waits.
func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	work := func() {
		for i := next.Add(1); i <= int64(n); i = next.Add(1) {
			do(int(i - 1))
		}
	}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// A part is one pile, sorted and without duplicates.
type part struct {
	data  []byte // encoded records
	count uint64
}

// A ref finds an encoded record of a pile: its first word, and its chunk and
// offset.
type ref struct {
	word uint64
	at   uint64
}

func (p pile) entry(r ref) entry {
	e, _ := readEntry(p[r.at>>16][r.at&0xffff:])
	return e
}

// sortPile sorts by counting on the bits below those that chose the pile,
// about one record a count. A caller who crafts records can make counts
// large, but each is then sorted in n·log n.
func sortPile(p pile, topBits int) part {
	var refs []ref
	size := 0
	for c, chunk := range p {
		for rest := chunk; len(rest) > 0; {
			at := len(chunk) - len(rest)
			refs = append(refs, ref{binary.LittleEndian.Uint64(rest), uint64(c)<<16 | uint64(at)})
			_, rest = readEntry(rest)
		}
		size += len(chunk)
	}
	countBits := min(bits.Len(uint(len(refs))), 16)
	slot := func(r ref) uint64 { return r.word << topBits >> (64 - countBits) }
	ends := make([]int, 1<<countBits)
	for _, r := range refs {
		ends[slot(r)]++
	}
	sum := 0
	for i, c := range ends {
		sum, ends[i] = sum+c, sum
	}
	sorted := make([]ref, len(refs))
	for _, r := range refs {
		sorted[ends[slot(r)]] = r
		ends[slot(r)]++
	}
	start := 0
	for _, end := range ends {
		if end-start > 1 {
			slices.SortFunc(sorted[start:end], func(a, b ref) int {
				if c := cmp.Compare(a.word, b.word); c != 0 {
					return c
				}
				return compareEntries(p.entry(a), p.entry(b))
			})
		}
		start = end
	}
	out := part{data: make([]byte, 0, size)}
	var last entry
	for i, r := range sorted {
		e := p.entry(r)
		if i > 0 && e.words == last.words && bytes.Equal(e.record, last.record) {
			continue
		}
		out.data = appendEntry(out.data, e)
		out.count++
		last = e
	}
	return out
}

// each calls yield for the records from part i on, until it returns false.
func each(parts []part, i int, yield func(entry) bool) {
	for ; i < len(parts); i++ {
		for rest := parts[i].data; len(rest) > 0; {
			var e entry
			if e, rest = readEntry(rest); !yield(e) {
				return
			}
		}
	}
}

// share is the first of n blocks or buckets that is left to part i of so
// many, and so the end of part i-1's: those that begin in the part. What
// begins in a part may end in the next.
func share(n uint64, i, parts int) uint64 {
	if i == parts {
		return n
	}
	first, rest := bits.Mul64(n, uint64(i)<<(64-pileBits)) // part i's least first word; parts is 1 or 1<<pileBits
	if rest != 0 {
		first++
	}
	return first
}

// fill sets the bits of all records.
func (f *Filter) fill(parts []part) {
	if f.scheme.derive != deriveBlock {
		each(parts, 0, func(e entry) bool {
			f.insert(e.record, e.words)
			return true
		})
		return
	}
	// Each part sets the blocks that begin in it: no two write to one.
	blocks := f.m / blockBits
	parallel(len(parts), func(i int) {
		first, end := share(blocks, i, len(parts)), share(blocks, i+1, len(parts))
		each(parts, i, func(e entry) bool {
			b := block(e.words, blocks)
			if b >= first && b < end {
				f.insert(e.record, e.words)
			}
			return b < end
		})
	})
}

// eachBucket calls do for every bucket that begins in part i, with its
// records, which are do's only until it returns.
func (s *frozenSet) eachBucket(parts []part, i int, do func(b uint64, entries []entry)) {
	b, end := share(s.buckets, i, len(parts)), share(s.buckets, i+1, len(parts))
	var entries []entry
	each(parts, i, func(e entry) bool {
		at := s.bucket(e.words)
		if at < b {
			return true // begins in an earlier part
		}
		for ; b < min(at, end); b++ {
			do(b, entries)
			entries = entries[:0]
		}
		entries = append(entries, e)
		return at < end
	})
	for ; b < end; b++ {
		do(b, entries)
		entries = entries[:0]
	}
}

// fill makes both sections.
func (s *frozenSet) fill(parts []part) {
	s.index = make([]byte, 8*(s.buckets+1))
	firsts := make([]uint64, len(parts)) // the ordinal of the first bucket that begins in a part
	parallel(len(parts), func(i int) {
		s.eachBucket(parts, i, func(b uint64, entries []entry) {
			binary.LittleEndian.PutUint64(s.index[8*b:], s.bucketSize(entries))
			firsts[i] += uint64(len(entries))
		})
	})
	var ordinal, offset uint64
	for i, count := range firsts {
		firsts[i] = ordinal
		ordinal += count
	}
	for b := range s.buckets + 1 {
		size := s.offset(b)
		binary.LittleEndian.PutUint64(s.index[8*b:], offset)
		offset += size
	}
	s.data, s.size, s.held = make([]byte, offset), offset, true
	parallel(len(parts), func(i int) {
		first := firsts[i]
		s.eachBucket(parts, i, func(b uint64, entries []entry) {
			at := s.offset(b)
			s.appendBucket(s.data[at:at:s.offset(b+1)], b, first, entries)
			first += uint64(len(entries))
		})
	})
}

// salt is what ties the heads of a set to the filter that was built with it
// (SPEC.md, section 4.3).
func (f *Filter) salt() uint64 {
	b := append([]byte("bloom2"), 0xFD, f.scheme.number)
	b = binary.LittleEndian.AppendUint16(b, uint16(f.k))
	b = binary.LittleEndian.AppendUint64(b, f.m)
	b = binary.LittleEndian.AppendUint64(b, f.n)
	b = append(append(b, byte(len(f.scheme.seed))), f.scheme.seed...)
	sum := sha256.Sum256(append(b, f.digest[:]...))
	return binary.LittleEndian.Uint64(sum[:])
}
