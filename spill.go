package bloom

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Building larger than memory: piles that are full are sorted and appended to
// one temporary file, a run at a time; a k-way merge of the runs then is the
// same sorted sequence as in memory, and is read three times: to count what
// is left without duplicates, to make filter and index, to make the buckets.
// Runs that are too many to be read side by side are merged into fewer first.

// A spill is the temporary file.
type spill struct {
	f    *os.File
	gone bool // removed already: the system frees it when it is closed
	runs []run
	size int64
}

type run struct {
	start, end int64
	longest    int // bytes of its longest record, encoded
}

// leastRead is how much of a run is read at a time, at least.
const leastRead = 4 << 10

// need is how much memory reading the run takes, at least.
func (r run) need() uint64 { return max(leastRead, uint64(r.longest)) }

func newSpill(folder string) (*spill, error) {
	f, err := os.CreateTemp(folder, "bloom-*.spill")
	if err != nil {
		return nil, err
	}
	// Where an open file can be removed, not even a crash leaves it behind.
	return &spill{f: f, gone: os.Remove(f.Name()) == nil}, nil
}

func (s *spill) close() error {
	if s == nil {
		return nil
	}
	err := s.f.Close()
	if !s.gone {
		err = errors.Join(err, os.Remove(s.f.Name()))
	}
	if err != nil {
		err = fmt.Errorf("bloom: removing the temporary file: %w", err)
	}
	return err
}

// spillPiles appends all that is on the piles as one run.
func (b *Builder) spillPiles() (err error) {
	b.dispatch()
	b.working.Wait()
	defer func() { err = while("spilling", err) }()
	if b.spill == nil {
		if b.spill, err = newSpill(b.o.Folder); err != nil {
			return err
		}
	}
	s := b.spill
	next := run{start: s.size}
	sorted := make([]pile, len(b.sorters))
	for first := 0; first < 1<<pileBits; first += len(sorted) {
		n := min(len(sorted), 1<<pileBits-first)
		parallel(len(b.sorters), n, func(worker, i int) {
			sorted[i] = b.sorters[worker].sort(b.takePile(first+i), pileBits)
		})
		for i, p := range sorted[:n] {
			for _, chunk := range p.chunks {
				if err := s.write(chunk); err != nil {
					return err
				}
			}
			b.sorters[i].reuse(p.chunks)
		}
	}
	s.endRun(next, b.longest)
	b.held, b.longest = 0, 0
	// Whoever sorted more piles has more chunks to spare now. Shared out, they
	// do for the next run; else each would come to have enough for itself.
	var spare [][]byte
	for _, sorter := range b.sorters {
		spare, sorter.spare = append(spare, sorter.spare...), sorter.spare[:0]
	}
	for i, chunk := range spare {
		sorter := b.sorters[i%len(b.sorters)]
		sorter.spare = append(sorter.spare, chunk)
	}
	return nil
}

func (s *spill) write(b []byte) error {
	_, err := s.f.WriteAt(b, s.size)
	s.size += int64(len(b))
	return err
}

// endRun ends the run that begins where r does.
func (s *spill) endRun(r run, longest int) {
	r.end, r.longest = s.size, longest
	s.runs = append(s.runs, r)
}

// fold merges runs into fewer until all can be read side by side in an eighth
// of the memory, or two can: long records take what they take.
func (b *Builder) fold(ctx context.Context) (err error) {
	count := uint64(0)
	for groups := b.spill.group(b.o.Memory / 8); len(groups) > 1; groups = b.spill.group(b.o.Memory / 8) {
		if err := b.foldOnce(ctx, groups, &count); err != nil {
			return while("spilling", err)
		}
	}
	return nil
}

// foldOnce makes one run of each group, in a temporary file that takes the
// place of the one there is.
func (b *Builder) foldOnce(ctx context.Context, groups [][]run, count *uint64) (err error) {
	next, err := newSpill(b.o.Folder)
	if err != nil {
		return err
	}
	unused := next
	defer func() { err = errors.Join(err, unused.close()) }() // also where Progress panics
	for _, runs := range groups {
		r, longest := run{start: next.size}, 0
		var buf []byte
		var failed error
		if err := b.merged(ctx, runs, func(e *entry) bool {
			longest = max(longest, recordOverhead+len(e.record))
			if buf = appendEntry(buf, e); len(buf) >= leastRead {
				failed = next.write(buf)
				buf = buf[:0]
			}
			if *count++; *count%(1<<16) == 0 {
				b.o.Progress("sorting", *count, 0)
			}
			return failed == nil
		}); err != nil {
			return err
		}
		if failed == nil {
			failed = next.write(buf)
		}
		if failed != nil {
			return failed
		}
		next.endRun(r, longest)
	}
	unused, b.spill = b.spill, next
	return nil
}

// group divides the runs into groups that can each be read side by side in so
// many bytes, of two at least.
func (s *spill) group(memory uint64) (groups [][]run) {
	first, need := 0, uint64(0)
	for i, r := range s.runs {
		if need+r.need() > memory && i-first >= 2 {
			groups = append(groups, s.runs[first:i])
			first, need = i, 0
		}
		need += r.need()
	}
	return append(groups, s.runs[first:])
}

// A runReader reads the records of a run in order.
type runReader struct {
	r         io.ReaderAt
	next, end int64
	buf       []byte // read and not yet used up
	space     []byte
	entry     entry // the current record; its bytes are in space
}

// advance goes on to the next record. ok is false at the run's end.
func (r *runReader) advance() (ok bool, err error) {
	want := recordOverhead
	for {
		if len(r.buf) >= recordOverhead {
			want = recordOverhead + int(binary.LittleEndian.Uint32(r.buf[32:]))
		} else if len(r.buf) == 0 && r.next == r.end {
			return false, nil
		}
		if len(r.buf) >= want {
			readEntry(&r.entry, r.buf)
			r.buf = r.buf[want:]
			return true, nil
		}
		if len(r.space) < want {
			r.space = make([]byte, want)
		}
		kept := copy(r.space, r.buf)
		n := int(min(r.end-r.next, int64(len(r.space)-kept)))
		if err := readFullAt(r.r, r.space[kept:kept+n], r.next); err != nil {
			return false, err
		}
		if n == 0 {
			return false, fmt.Errorf("%w: the temporary file has changed", ErrCorrupt)
		}
		r.next += int64(n)
		r.buf = r.space[:kept+n]
	}
}

// readers is a heap of runs, the one with the least record first.
type readers []*runReader

func (r readers) Len() int           { return len(r) }
func (r readers) Less(i, j int) bool { return compareEntries(&r[i].entry, &r[j].entry) < 0 }
func (r readers) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *readers) Push(any)          { panic("bloom: nothing is pushed") }
func (r *readers) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// merged calls yield for all records of these runs in canonical order, each
// once. A record's bytes are good until the next.
func (b *Builder) merged(ctx context.Context, runs []run, yield func(*entry) bool) error {
	var h readers
	size := min(max(b.o.Memory/8/uint64(len(runs)), leastRead), 1<<20)
	for _, run := range runs {
		r := &runReader{r: b.spill.f, next: run.start, end: run.end, space: make([]byte, min(max(size, run.need()), uint64(run.end-run.start)))}
		ok, err := r.advance()
		if err != nil {
			return err
		}
		if ok {
			h = append(h, r)
		}
	}
	heap.Init(&h)
	var last entry
	for count := 0; len(h) > 0; count++ {
		if count%(1<<12) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		e := &h[0].entry
		if count == 0 || e.words != last.words || !bytes.Equal(e.record, last.record) {
			if !yield(e) {
				return nil
			}
			last.words, last.record = e.words, append(last.record[:0], e.record...)
		}
		ok, err := h[0].advance()
		if err != nil {
			return err
		}
		if ok {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	return nil
}

// A chunkWriter writes a section from its begin to its end, chunk by chunk,
// and takes checks and digest of it.
type chunkWriter struct {
	w      io.WriterAt
	at     int64
	buf    []byte // of the chunk under way
	sums   [][sha256.Size]byte
	checks []byte
	err    error
}

func newChunkWriter(w io.WriterAt, at uint64) *chunkWriter {
	return &chunkWriter{w: w, at: int64(at), buf: make([]byte, 0, sectionChunk)}
}

func (c *chunkWriter) write(b []byte) {
	for len(b) > 0 && c.err == nil {
		n := min(len(b), sectionChunk-len(c.buf))
		c.buf = append(c.buf, b[:n]...)
		if b = b[n:]; len(c.buf) == sectionChunk {
			c.flush()
		}
	}
}

func (c *chunkWriter) flush() {
	if len(c.buf) == 0 || c.err != nil {
		return
	}
	c.sums = append(c.sums, sha256.Sum256(c.buf))
	c.checks = binary.LittleEndian.AppendUint32(c.checks, crc32.Checksum(c.buf, castagnoli))
	_, c.err = c.w.WriteAt(c.buf, c.at)
	c.at += int64(len(c.buf))
	c.buf = c.buf[:0]
}

// close ends the section and returns its digest.
func (c *chunkWriter) close() (digest [sha256.Size]byte, err error) {
	c.flush()
	return joinDigests(c.sums), c.err
}

// merge writes the snapshot of what was spilled to a file.
func (b *Builder) merge(ctx context.Context, w *os.File) (err error) {
	if err := b.spillPiles(); err != nil {
		return err
	}
	b.sorters, b.batch.data, b.batch.ends = nil, nil, nil // make room
	if err := b.fold(ctx); err != nil {
		return err
	}
	n := uint64(0)
	progress := func(stage string, done, total uint64) {
		if done%(1<<16) == 0 || done == total {
			b.o.Progress(stage, done, total)
		}
	}
	if err := b.merged(ctx, b.spill.runs, func(*entry) bool {
		n++
		progress("counting", n, 0)
		return true
	}); err != nil {
		return err
	}
	progress("counting", n, n)
	cfg, err := b.cfg().Resolve(n)
	if err != nil {
		return err
	}
	f := &Filter{scheme: newScheme(cfg), m: cfg.Bits, k: cfg.Hashes, n: n}
	if size := filterBytes(cfg.Bits); !f.scheme.block && size > b.limit {
		return fmt.Errorf("%w: a filter of %d bytes, which %v holds in memory, passes %d", ErrTooLarge, size, cfg.Protocol, b.limit)
	}
	h := f.header(kindSnapshot)
	l, _ := h.layout() // where the index begins does not depend on what is not known yet

	// Filter and index rise with the records, both at once.
	filter, index := newChunkWriter(w, headerSize), newChunkWriter(w, l.index)
	set := newFrozenSet(n)
	set.scheme = b.set
	done := uint64(0)
	var arena, head []byte
	var mergeErr error
	records := func(stage string, see func(*entry)) func(func(*entry) bool) {
		done = 0
		return func(yield func(*entry) bool) {
			mergeErr = b.merged(ctx, b.spill.runs, func(e *entry) bool {
				done++
				progress(stage, done, n)
				see(e)
				return yield(e)
			})
		}
	}
	bits := newBlockWriter(f, filter)
	var offset [8]byte
	index.write(offset[:])
	// Of the records only lengths are asked: no arena.
	set.eachBucket(records("filter", bits.add), 0, set.buckets, nil, func(_ uint64, entries []entry) {
		set.size += set.bucketSize(entries)
		binary.LittleEndian.PutUint64(offset[:], set.size)
		index.write(offset[:])
	})
	if mergeErr != nil {
		return mergeErr
	}
	bits.close()
	if f.digest, err = filter.close(); err != nil {
		return err
	}
	h.filter = f.digest
	if h.index, err = index.close(); err != nil {
		return err
	}
	set.salt = h.salt()
	h.setBytes = set.size
	l, ok := h.layout()
	if !ok {
		return fmt.Errorf("%w: %d records and %d bytes of buckets", ErrTooLarge, n, set.size)
	}

	buckets := newChunkWriter(w, l.buckets)
	first := uint64(0)
	set.eachBucket(records("writing", func(*entry) {}), 0, set.buckets, &arena, func(b uint64, entries []entry) {
		head = set.appendHead(head[:0], first, entries)
		check := uint32(0)
		for i := range entries {
			check = crc32.Update(check, castagnoli, entries[i].record)
		}
		set.seal(head, b, check)
		buckets.write(head)
		for i := range entries {
			buckets.write(entries[i].record)
		}
		first += uint64(len(entries))
	})
	if mergeErr != nil {
		return mergeErr
	}
	if h.set, err = buckets.close(); err != nil {
		return err
	}
	if h.keyed {
		h.keyCheck = h.seal(f.scheme.hidden.start)
	}
	if _, err := w.WriteAt(append(filter.checks, index.checks...), int64(l.checks)); err != nil {
		return err
	}
	_, err = w.WriteAt(h.append(nil), 0)
	return err
}

// A blockWriter sets the bits of records that come in order. The v2 protocols
// need one block at a time; the others hold their filter.
type blockWriter struct {
	f     *Filter
	out   *chunkWriter
	block uint64 // that f.bits is, for the v2 protocols
}

func newBlockWriter(f *Filter, out *chunkWriter) *blockWriter {
	if f.scheme.block {
		f.bits = make([]byte, blockBits/8)
	} else {
		f.bits = make([]byte, filterBytes(f.m))
	}
	return &blockWriter{f: f, out: out}
}

func (w *blockWriter) add(e *entry) {
	if !w.f.scheme.block {
		w.f.insert(e.record, e.words)
		return
	}
	w.advance(block(e.words, w.f.m/blockBits))
	for j := range w.f.k {
		setBit(w.f.bits, pick(e.words, j))
	}
}

// advance writes the blocks before b.
func (w *blockWriter) advance(b uint64) {
	for ; w.block < b; w.block++ {
		w.out.write(w.f.bits)
		clear(w.f.bits)
	}
}

func (w *blockWriter) close() {
	if w.f.scheme.block {
		w.advance(w.f.m / blockBits)
	} else {
		w.out.write(w.f.bits)
	}
	w.f.bits = nil
}
