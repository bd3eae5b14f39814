package bloom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/b1cc2673/bloom/internal/digest"
	"github.com/b1cc2673/bloom/internal/mapping"
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
	batchBytes  = 1 << 18
	leastMemory = 4 << 20
)

// BuildOptions bound what a [Builder] takes. The zero value builds in memory.
type BuildOptions struct {
	// Memory is about how many bytes of memory adding and saving may take,
	// where records are short; a few dozen of the longest ones come on top, as
	// buckets are made whole. What does not fit is spilled to a temporary file,
	// and once a Builder has spilled, only Save can end it with a snapshot; with
	// Memory set, Save spills in any case. Filters of the v2 protocols are made
	// piece by piece; the others hold theirs in memory besides. Values below 4
	// MiB count as 4 MiB. 0: no spilling, and the limits of [New].
	Memory uint64

	// Folder holds the temporary file, which takes the bytes of all records,
	// repeats included, and 36 for each; twice that, where records are so many
	// or so long that they are merged in passes. "": [os.TempDir].
	Folder string

	// MaxRecords and MaxBytes are how many records may be added and how many
	// bytes they may have together, repeats included. 0: no limit.
	MaxRecords, MaxBytes uint64

	// Progress is called now and then with a stage ("adding", "sorting",
	// "counting", "filter", "writing") and how many records of how many have
	// passed it; total is 0 while it is unknown. In memory, stages are reported
	// when they end. It is called by one goroutine at a time and must not call
	// the Builder. nil: none.
	Progress func(stage string, done, total uint64)
}

// A Builder makes a snapshot of records that are added one by one, from any
// number of goroutines, and of snapshots that exist already: in memory, or in
// a file larger than memory. The result is the same, byte for byte.
//
// Add records, then call [Builder.Snapshot] or [Builder.Save], once. Close it
// in any case: it then leaves no temporary file.
type Builder struct {
	cfg      func() Config // checked; Bits and Hashes may be zero; a function, as fmt does not look into one
	set      *scheme
	protocol *protocol
	o        BuildOptions
	limit    uint64 // of what is held in memory

	mu      sync.Mutex
	ended   bool  // by Snapshot, Save or Close
	failed  error // of the temporary file: there is no going on
	records uint64
	bytes   uint64 // of all records
	held    uint64 // on the piles, encoded
	longest int    // of what is held, encoded
	batch   *batch
	idle    chan *sorter
	sorters []*sorter
	working sync.WaitGroup
	spill   *spill // nil: nothing was spilled
}

// NewBuilder returns a Builder for snapshots of cfg, of which it keeps a copy.
// Errors: ErrConfig (and ErrKey with it, if it is the key), and, with Memory,
// those of the file system for a Folder that is none.
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
		folder := o.Folder
		if folder == "" {
			folder = os.TempDir()
		}
		if info, err := os.Stat(folder); err != nil {
			return nil, fmt.Errorf("bloom: folder of temporary files: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("bloom: folder of temporary files: %w", &fs.PathError{Op: "spill", Path: folder, Err: fs.ErrInvalid})
		}
	}
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	return &Builder{cfg: func() Config { return cfg }, protocol: &protocols[cfg.Protocol], set: newScheme(cfg).setScheme(), o: o, limit: mostMemory, batch: new(batch)}, nil
}

// String names the protocol and how many records were added.
func (b *Builder) String() string {
	if b == nil || b.batch == nil {
		return "bloom.Builder(not open)"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("bloom.Builder(%v records=%d)", b.cfg().Protocol, b.records)
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

// checkContext refuses a nil context, which would be missed only when it is
// asked.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: nil context", ErrConfig)
	}
	return nil
}

// AddSnapshot adds all records of s, whatever protocol, seed and key it has:
// they are digested anew, and verified on the way where s does not hold them.
// It stops at the first error: those of [Builder.Add], of s, or of ctx.
func (b *Builder) AddSnapshot(ctx context.Context, s *Snapshot) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	for record, err := range s.Records() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return while("adding a snapshot", err)
		}
		if err := b.Add(record); err != nil {
			return err
		}
	}
	return nil
}

// add is Add without the lock, for any kind of record.
func add[T ~[]byte | ~string](b *Builder, record T) error {
	p := b.protocol
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
	b.longest = max(b.longest, recordOverhead+int(size))
	if len(b.batch.data) >= batchBytes || len(b.batch.ends) >= batchBytes/16 {
		b.dispatch()
		b.o.Progress("adding", b.records, 0)
	}
	if b.o.Memory != 0 && b.held >= b.o.Memory/5 { // the collector lets garbage grow to what is alive, and sorting needs room
		if b.failed = b.spillPiles(); b.failed != nil {
			return b.failed
		}
	}
	return nil
}

// dispatch hands the batch to a worker, and waits for one if all are busy.
func (b *Builder) dispatch() {
	if b.idle == nil {
		b.idle = make(chan *sorter, cores())
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

// end makes every later call answer with ErrClosed. The caller that gets nil
// owns what the Builder holds, and must discard it. Where all is wanted in
// memory and records were spilled the Builder goes on, so that it can be saved.
func (b *Builder) end(inMemory bool) error {
	if b == nil || b.set == nil {
		return fmt.Errorf("%w: nil or zero Builder", ErrClosed)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return fmt.Errorf("%w: the Builder has ended", ErrClosed)
	}
	if inMemory && b.spill != nil {
		return fmt.Errorf("%w: records were spilled at %d bytes of Memory; save them to a file", ErrTooLarge, b.o.Memory)
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
	if b.end(false) != nil {
		return nil
	}
	return b.discard()
}

// Snapshot ends the Builder and returns the snapshot of all records added, in
// memory. If records were spilled it does not end it and returns ErrTooLarge:
// [Builder.Save] it, and [Open] the file. Other errors: those of [New] that do
// not concern a single record, ErrClosed, and ctx's.
func (b *Builder) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	if err := b.end(true); err != nil {
		return nil, err
	}
	defer b.discard()
	if b.failed != nil {
		return nil, b.failed
	}
	return b.build(ctx)
}

// Save ends the Builder and writes the snapshot of all records added to a
// file, as [Snapshot.Save] does: path is the old file or the new one, whole. A
// path beside which no file can be made is refused before the Builder ends.
// Errors: those of Snapshot, of the file system, and ctx's.
func (b *Builder) Save(ctx context.Context, path string) (err error) {
	if err := checkContext(ctx); err != nil {
		return err
	}
	if b == nil || b.set == nil {
		return b.end(false)
	}
	place, err := startSaving(path)
	if err != nil {
		return err
	}
	if err := b.end(false); err != nil {
		place.abandon()
		return err
	}
	defer func() { err = errors.Join(err, b.discard()) }()
	return place.finish(func(f *os.File) error {
		if b.failed != nil {
			return b.failed
		}
		if b.o.Memory != 0 {
			return b.merge(ctx, f)
		}
		s, err := b.build(ctx)
		if err != nil {
			return err
		}
		_, err = s.WriteTo(f)
		return err
	})
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
	piles := make([]pile, 1<<topBits)
	parallel(len(b.sorters), len(piles), func(worker, i int) {
		if ctx.Err() == nil {
			piles[i] = b.sorters[worker].sort(b.takePile(i), topBits)
		}
	})
	n := uint64(0)
	for i := range piles {
		n += uint64(piles[i].count)
	}
	b.o.Progress("sorting", n, n)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("bloom: building: %w", err)
	}
	cfg, err := b.cfg().Resolve(n)
	if err != nil {
		return nil, err
	}
	if size := filterBytes(cfg.Bits); size > b.limit {
		return nil, fmt.Errorf("%w: a filter of %d bytes, for %d records, passes %d; is the rate meant?", ErrTooLarge, size, n, b.limit)
	}
	f := &Filter{scheme: newScheme(cfg), m: cfg.Bits, k: cfg.Hashes, n: n, bits: makeSection(filterBytes(cfg.Bits))}
	f.fill(piles)
	b.o.Progress("filter", n, n)
	f.digest = sectionDigest(f.bits)
	set := newFrozenSet(n)
	set.scheme = b.set
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("bloom: building: %w", err)
	}
	firsts := set.fillIndex(piles)
	h := f.header(kindSnapshot)
	h.index = sectionDigest(set.index)
	set.salt = h.salt()
	set.fillBuckets(piles, firsts)
	b.o.Progress("writing", n, n)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("bloom: building: %w", err)
	}
	return &Snapshot{filter: f, set: set, file: new(file)}, nil
}

// takePile takes pile i from all workers.
func (b *Builder) takePile(i int) (p pile) {
	for _, s := range b.sorters {
		p.chunks = append(p.chunks, s.piles[i].chunks...)
		p.count += s.piles[i].count
		s.piles[i] = pile{}
	}
	return p
}

// cores is how many workers there should be.
func cores() int { return runtime.GOMAXPROCS(0) }

// parallel calls do for 0 to n-1, by so many workers, and waits.
func parallel(workers, n int, do func(worker, i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	var panicked atomic.Value // a panic, of a reader's say, is the caller's to recover
	work := func(worker int) {
		defer func() {
			if p := recover(); p != nil {
				panicked.CompareAndSwap(nil, []any{p})
			}
		}()
		for i := next.Add(1); i <= int64(n); i = next.Add(1) {
			do(worker, int(i-1))
		}
	}
	for worker := 1; worker < min(n, workers); worker++ {
		wg.Go(func() { work(worker) })
	}
	work(0)
	wg.Wait()
	if p, ok := panicked.Load().([]any); ok {
		panic(p[0])
	}
}

// makeSection makes room for a section that lookups will read at random.
func makeSection(size uint64) []byte {
	b := make([]byte, size)
	mapping.Huge(b)
	return b
}

// fill sets the bits of all records.
func (f *Filter) fill(piles []pile) {
	if !f.scheme.block {
		each(piles, 0, func(e *entry) bool {
			f.insert(e.record, e.words)
			return true
		})
		return
	}
	// Each pile sets the blocks that begin in it: no two write to one.
	blocks := f.m / blockBits
	parallel(cores(), len(piles), func(_, i int) {
		first, end := share(blocks, i, len(piles)), share(blocks, i+1, len(piles))
		each(piles, i, func(e *entry) bool {
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
// in or before bucket b. Records that do not outlast its next step are copied
// to arena; if that is nil, do may ask for their lengths only.
func (s *frozenSet) eachBucket(records func(func(*entry) bool), b, end uint64, arena *[]byte, do func(b uint64, entries []entry)) {
	var entries []entry
	flush := func() {
		do(b, entries)
		b, entries = b+1, entries[:0]
		if arena != nil {
			*arena = (*arena)[:0]
		}
	}
	records(func(e *entry) bool {
		at := s.bucket(e.words)
		if at < b {
			return true // begins in an earlier pile
		}
		for b < min(at, end) {
			flush()
		}
		entries = append(entries, *e)
		if last := &entries[len(entries)-1]; arena != nil && len(e.record) > chunkBytes {
			last.record = bytes.Clone(e.record) // an arena that grows would hold it more than once
		} else if arena != nil {
			start := len(*arena)
			*arena = append(*arena, e.record...)
			last.record = (*arena)[start:]
		}
		return at < end
	})
	for b < end {
		flush()
	}
}

// eachBucketOf is eachBucket for the buckets that begin in pile i.
func (s *frozenSet) eachBucketOf(piles []pile, i int, do func(b uint64, entries []entry)) {
	records := func(yield func(*entry) bool) { each(piles, i, yield) }
	s.eachBucket(records, share(s.buckets, i, len(piles)), share(s.buckets, i+1, len(piles)), nil, do)
}

// fillIndex makes the index, and returns for each pile the ordinal of the
// first record of the first bucket that begins in it.
func (s *frozenSet) fillIndex(piles []pile) (firsts []uint64) {
	s.index = makeSection(8 * (s.buckets + 1))
	firsts = make([]uint64, len(piles))
	parallel(cores(), len(piles), func(_, i int) {
		s.eachBucketOf(piles, i, func(b uint64, entries []entry) {
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
	s.size = offset
	return firsts
}

// fillBuckets makes the buckets. It needs the salt.
func (s *frozenSet) fillBuckets(piles []pile, firsts []uint64) {
	s.data, s.held = makeSection(s.size + slack)[:s.size], true
	parallel(cores(), len(piles), func(_, i int) {
		first := firsts[i]
		s.eachBucketOf(piles, i, func(b uint64, entries []entry) {
			at := s.offset(b)
			s.appendBucket(s.data[at:at:s.offset(b+1)], b, first, entries)
			first += uint64(len(entries))
		})
	})
}
