package bloom

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/b1cc2673/bloom/internal/digest"
)

// Building is one sort. Records are digested as they come and put on one of
// 256 piles by the top bits of the digest's first word; each pile is sorted
// by itself, duplicates fall out, and what is left, read in order, is the
// order of the filter's blocks and of the set's buckets.

// mostMemory bounds the encoded records, and filter, of what is built in
// memory, in bytes: 8 GiB, or 256 MiB where an address has 32 bits. At its
// peak building holds them up to four times: in batches, on piles, sorted, and
// as sections.
const mostMemory = 1 << (28 + 5*(^uint(0)>>63))

const (
	pileBits    = 8
	batchBytes  = 1 << 18
	leastMemory = 4 << 20
	chunkBytes  = 1 << 16 // an offset in a chunk is 16 bits, see ref
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

// A sorter is one worker's piles.
type sorter struct {
	piles [1 << pileBits]pile
	batch *batch     // the last one taken, to be filled again
	spare [][]byte   // chunks of piles that were spilled
	mu    sync.Mutex // of spare
}

func (s *sorter) add(p *pile, e entry) {
	size := recordOverhead + len(e.record)
	last := len(*p) - 1
	if last < 0 || cap((*p)[last])-len((*p)[last]) < size {
		if n := len(s.spare); n > 0 && size <= chunkBytes {
			*p, s.spare = append(*p, s.spare[n-1]), s.spare[:n-1]
		} else {
			next := 1 << 10
			if last >= 0 {
				next = min(2*cap((*p)[last]), chunkBytes)
			}
			*p = append(*p, make([]byte, 0, max(next, size)))
		}
		last++
	}
	(*p)[last] = appendEntry((*p)[last], e)
}

// take digests a batch and puts its records on 2^topBits piles.
func (s *sorter) take(set *scheme, b *batch, topBits int) {
	start := 0
	for _, end := range b.ends {
		e := entry{record: b.data[start:end]}
		e.words = set.digest(e.record)
		s.add(&s.piles[e.words[0]>>(64-topBits)], e)
		start = end
	}
	s.batch = b
}

// BuildOptions bound what a [Builder] takes. The zero value builds in memory.
type BuildOptions struct {
	// Memory is about how many bytes of memory building may take. Records
	// that do not fit are spilled to one temporary file, and what was spilled
	// can only be saved. For the v2 protocols it bounds all of building;
	// the others hold their filter in memory besides. At least 4 MiB are
	// taken. 0: no spilling, and the limits of [New].
	Memory uint64

	// Folder is where the temporary file is made, which takes up the records,
	// repeats included, and 36 bytes for each. "": [os.TempDir].
	Folder string

	// MaxRecords and MaxBytes are how many records may be added and how many
	// bytes they may have together, repeats included. 0: no limit.
	MaxRecords, MaxBytes uint64

	// Progress is called now and then with a stage ("adding", "sorting",
	// "counting", "filter", "writing") and how many records of how many have
	// passed it; a total of 0 is not known yet. It is called by one goroutine
	// at a time and must not call the Builder. nil: none.
	Progress func(stage string, done, total uint64)
}

// A Builder makes a snapshot of records that are added one by one, from any
// number of goroutines, and of snapshots that exist already: in memory, or in
// a file larger than memory. The result is the same, byte for byte.
//
// Add records, then call [Builder.Snapshot] or [Builder.Save], once. Close it
// in any case: it then leaves no temporary file.
type Builder struct {
	cfg   *Config // checked; Bits and Hashes may be zero; a pointer, as fmt would follow no second one to the key
	set   *scheme
	o     BuildOptions
	limit uint64 // of what is held in memory

	mu      sync.Mutex
	ended   bool  // by Snapshot, Save or Close
	failed  error // of the temporary file: there is no going on
	records uint64
	bytes   uint64 // of all records
	held    uint64 // on the piles, encoded
	batch   *batch
	idle    chan *sorter
	sorters []*sorter
	working sync.WaitGroup
	spill   *spill // nil: nothing was spilled
}

// NewBuilder returns a Builder for snapshots of cfg, of which it keeps a copy.
// Errors: ErrConfig (and ErrKey with it, if it is the key).
func NewBuilder(cfg Config, o BuildOptions) (*Builder, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Seed = append([]byte(nil), cfg.Seed...)
	if cfg.Key != nil {
		cfg.Key = append([]byte{}, cfg.Key...)
	}
	if o.Memory != 0 {
		o.Memory = max(o.Memory, leastMemory)
	}
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	return &Builder{cfg: &cfg, set: newScheme(cfg).setScheme(), o: o, limit: mostMemory, batch: new(batch)}, nil
}

// String names the protocol and how many records were added.
func (b *Builder) String() string {
	if b == nil || b.batch == nil {
		return "bloom.Builder(not open)"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("bloom.Builder(%v records=%d)", b.cfg.Protocol, b.records)
}

// Format prints String's text under every verb, and so never the key.
func (b *Builder) Format(w fmt.State, verb rune) { fmt.Fprint(w, b.String()) }

// LogValue implements [slog.LogValuer].
func (b *Builder) LogValue() slog.Value { return slog.StringValue(b.String()) }

// Add adds a copy of record. A record that is refused is not added and does
// no harm to the rest.
//
// Errors: ErrItem for what the protocol does not admit; ErrTooLarge for more
// than the protocol, the options or memory admit; ErrClosed after the Builder
// has ended; and, from then on for every call, those of the temporary file.
func (b *Builder) Add(record []byte) error {
	if b == nil || b.set == nil {
		return fmt.Errorf("%w: nil or zero Builder", ErrClosed)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return add(b, record)
}

// AddString is [Builder.Add] for the bytes of a string.
func (b *Builder) AddString(record string) error { return b.Add(digest.Bytes(record)) }

// AddSnapshot adds all records of s, whatever protocol, seed and key it has:
// they are digested anew, and verified on the way where s does not hold them.
// It stops at the first error: those of [Builder.Add], of s, or of ctx.
func (b *Builder) AddSnapshot(ctx context.Context, s *Snapshot) error {
	for record, err := range s.Records() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("bloom: adding a snapshot: %w", err)
		}
		if err := b.Add(record); err != nil {
			return err
		}
	}
	return nil
}

// add is Add without the lock, for any kind of record.
func add[T ~[]byte | ~string](b *Builder, record T) error {
	p := &protocols[b.cfg.Protocol]
	size := uint64(len(record))
	switch {
	case b.ended:
		return fmt.Errorf("%w: the Builder has ended", ErrClosed)
	case b.failed != nil:
		return b.failed
	case b.records == p.mostRecords:
		return fmt.Errorf("%w: more than %d records, repeats included; %s takes no more", ErrTooLarge, p.mostRecords, p.name)
	case b.o.MaxRecords != 0 && b.records == b.o.MaxRecords:
		return fmt.Errorf("%w: more than MaxRecords = %d records", ErrTooLarge, b.o.MaxRecords)
	case b.o.MaxBytes != 0 && size > b.o.MaxBytes-b.bytes:
		return fmt.Errorf("%w: record %d: the records pass MaxBytes = %d bytes", ErrTooLarge, b.records, b.o.MaxBytes)
	case b.o.Memory == 0 && recordOverhead+size > b.limit-b.held:
		return fmt.Errorf("%w: record %d: with %d bytes for each, the records pass %d bytes", ErrTooLarge, b.records, recordOverhead, b.limit)
	}
	if size > p.mostItem || size < p.leastItem { // before it is copied
		return fmt.Errorf("%w (record %d)", p.lengthError(size), b.records)
	}
	start := len(b.batch.data)
	b.batch.data = append(b.batch.data, record...)
	if err := p.checkItem(b.batch.data[start:]); err != nil {
		b.batch.data = b.batch.data[:start]
		return fmt.Errorf("%w (record %d)", err, b.records)
	}
	b.batch.ends = append(b.batch.ends, len(b.batch.data))
	b.records++
	b.bytes += size
	b.held += recordOverhead + size
	if len(b.batch.data) >= batchBytes || len(b.batch.ends) >= batchBytes/16 {
		b.dispatch()
		b.o.Progress("adding", b.records, 0)
	}
	if b.o.Memory != 0 && b.held >= b.o.Memory/2 {
		if b.failed = b.spillPiles(); b.failed != nil {
			return b.failed
		}
	}
	return nil
}

// dispatch hands the batch to a worker, and waits for one if all are busy.
func (b *Builder) dispatch() {
	if b.idle == nil {
		b.idle = make(chan *sorter, runtime.GOMAXPROCS(0))
		for range cap(b.idle) {
			s := &sorter{batch: new(batch)}
			b.sorters = append(b.sorters, s)
			b.idle <- s
		}
	}
	s, full := <-b.idle, b.batch
	b.batch = s.batch
	b.batch.data, b.batch.ends = b.batch.data[:0], b.batch.ends[:0]
	b.working.Go(func() {
		s.take(b.set, full, pileBits)
		b.idle <- s
	})
}

// end makes every later call answer with ErrClosed. Who gets no ErrClosed
// from it owns what the Builder holds, and must discard it.
func (b *Builder) end() error {
	if b == nil || b.set == nil {
		return fmt.Errorf("%w: nil or zero Builder", ErrClosed)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return fmt.Errorf("%w: the Builder has ended", ErrClosed)
	}
	b.ended = true
	b.working.Wait()
	return nil
}

// discard lets go of all records and removes the temporary file.
func (b *Builder) discard() error {
	b.sorters, b.batch.data, b.batch.ends = nil, nil, nil
	err := b.spill.close()
	b.spill = nil
	return err
}

// Close ends the Builder and removes its temporary file. After Snapshot or
// Save, and again, it does nothing.
func (b *Builder) Close() error {
	if b.end() != nil {
		return nil
	}
	return b.discard()
}

// Snapshot ends the Builder and returns the snapshot of all records added, in
// memory. ErrTooLarge if records were spilled: [Builder.Save] it, and [Open]
// the file. Other errors: those of [New] that do not concern a single record,
// ErrClosed, and ctx's.
func (b *Builder) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := b.end(); err != nil {
		return nil, err
	}
	defer b.discard()
	if b.failed != nil {
		return nil, b.failed
	}
	if b.spill != nil {
		return nil, fmt.Errorf("%w: records were spilled at %d bytes of Memory; save them to a file", ErrTooLarge, b.o.Memory)
	}
	return b.build(ctx)
}

// Save ends the Builder and writes the snapshot of all records added to a
// file, as [Snapshot.Save] does: path is the old file or the new one, whole.
// Errors: those of Snapshot, of the file system, and ctx's.
func (b *Builder) Save(ctx context.Context, path string) (err error) {
	if err := b.end(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.discard()) }()
	if b.failed != nil {
		return b.failed
	}
	if b.spill != nil {
		return save(path, func(f *os.File) error { return b.merge(ctx, f) })
	}
	s, err := b.build(ctx)
	if err != nil {
		return err
	}
	return s.Save(path)
}

// build makes the sections of what is on the piles.
func (b *Builder) build(ctx context.Context) (*Snapshot, error) {
	topBits := pileBits
	if b.sorters == nil { // a small set is not worth a goroutine
		topBits = 0
		b.sorters = []*sorter{new(sorter)}
		b.sorters[0].take(b.set, b.batch, topBits)
	} else {
		b.dispatch()
		b.working.Wait()
	}
	parts := make([]part, 1<<topBits)
	var sorted atomic.Uint64
	parallel(len(parts), func(i int) {
		if ctx.Err() != nil {
			return
		}
		parts[i] = sortPile(b.takePile(i), topBits, new(scratch))
		sorted.Add(parts[i].count)
	})
	n := sorted.Load()
	b.o.Progress("sorting", n, n)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("bloom: building: %w", err)
	}
	size := uint64(0)
	for i := range parts {
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
	b.o.Progress("filter", n, n)
	f.digest = sectionDigest(f.bits)
	set := newFrozenSet(n, f.salt())
	set.scheme = b.set
	set.fill(parts)
	b.o.Progress("writing", n, n)
	return &Snapshot{filter: f, set: set, file: new(file)}, nil
}

// takePile takes pile i from all workers.
func (b *Builder) takePile(i int) (p pile) {
	for _, s := range b.sorters {
		p = append(p, s.piles[i]...)
		s.piles[i] = nil
	}
	return p
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

// scratch is what sortPile works with, for more than one pile. A caller who
// keeps the result leaves out nil.
type scratch struct {
	refs, sorted []ref
	ends         []int
	out          []byte
}

// sortPile sorts by counting on the bits below those that chose the pile,
// about one record a count. A caller who crafts records can make counts
// large, but each is then sorted in n·log n.
func sortPile(p pile, topBits int, w *scratch) part {
	refs := w.refs[:0]
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
	ends := slices.Grow(w.ends[:0], 1<<countBits)[:1<<countBits]
	clear(ends)
	for _, r := range refs {
		ends[slot(r)]++
	}
	sum := 0
	for i, c := range ends {
		sum, ends[i] = sum+c, sum
	}
	sorted := slices.Grow(w.sorted[:0], len(refs))[:len(refs)]
	w.refs, w.ends, w.sorted = refs, ends, sorted
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
	out := part{data: slices.Grow(w.out[:0], size)}
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

// eachBucket calls do for the buckets from b to end, with their records,
// which are do's only until it returns. The sequence is in order and begins
// in or before bucket b. If its records do not outlast its next step they are
// copied to arena, else that is nil.
func (s *frozenSet) eachBucket(records func(func(entry) bool), b, end uint64, arena *[]byte, do func(b uint64, entries []entry)) {
	var entries []entry
	flush := func() {
		do(b, entries)
		b, entries = b+1, entries[:0]
		if arena != nil {
			*arena = (*arena)[:0]
		}
	}
	records(func(e entry) bool {
		at := s.bucket(e.words)
		if at < b {
			return true // begins in an earlier part
		}
		for b < min(at, end) {
			flush()
		}
		if arena != nil {
			start := len(*arena)
			*arena = append(*arena, e.record...)
			e.record = (*arena)[start:]
		}
		entries = append(entries, e)
		return at < end
	})
	for b < end {
		flush()
	}
}

// eachBucketOf is eachBucket for the buckets that begin in part i.
func (s *frozenSet) eachBucketOf(parts []part, i int, do func(b uint64, entries []entry)) {
	records := func(yield func(entry) bool) { each(parts, i, yield) }
	s.eachBucket(records, share(s.buckets, i, len(parts)), share(s.buckets, i+1, len(parts)), nil, do)
}

// fill makes both sections.
func (s *frozenSet) fill(parts []part) {
	s.index = make([]byte, 8*(s.buckets+1))
	firsts := make([]uint64, len(parts)) // the ordinal of the first bucket that begins in a part
	parallel(len(parts), func(i int) {
		s.eachBucketOf(parts, i, func(b uint64, entries []entry) {
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
		s.eachBucketOf(parts, i, func(b uint64, entries []entry) {
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
