package bloom

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// Piles are where records wait to be sorted, 256 to a worker, by the top bits
// of the digest's first word. Each is sorted by itself, into chunks that
// sorting the one before has set free, and is then read from end to end only.

const (
	pileBits   = 8
	chunkBytes = 1 << 16 // an offset in a chunk is 16 bits, see ref
)

// An encoded record on a pile: four words, length, bytes.
const recordOverhead = 4*8 + 4

func appendEntry(dst []byte, e *entry) []byte {
	at := len(dst)
	dst = slices.Grow(dst, recordOverhead)[:at+recordOverhead]
	b := (*[recordOverhead]byte)(dst[at:])
	binary.LittleEndian.PutUint64(b[0:], e.words[0])
	binary.LittleEndian.PutUint64(b[8:], e.words[1])
	binary.LittleEndian.PutUint64(b[16:], e.words[2])
	binary.LittleEndian.PutUint64(b[24:], e.words[3])
	binary.LittleEndian.PutUint32(b[32:], uint32(len(e.record)))
	return append(dst, e.record...)
}

// readEntry reads the encoded record that b begins with, without a copy.
func readEntry(e *entry, b []byte) {
	h := (*[recordOverhead]byte)(b)
	e.words[0] = binary.LittleEndian.Uint64(h[0:])
	e.words[1] = binary.LittleEndian.Uint64(h[8:])
	e.words[2] = binary.LittleEndian.Uint64(h[16:])
	e.words[3] = binary.LittleEndian.Uint64(h[24:])
	end := recordOverhead + int(binary.LittleEndian.Uint32(h[32:]))
	e.record = b[recordOverhead:end:end]
}

// compareEntries is the canonical order: the whole digest, then the bytes.
func compareEntries(a, b *entry) int {
	for i := range a.words {
		if c := cmp.Compare(a.words[i], b.words[i]); c != 0 {
			return c
		}
	}
	return bytes.Compare(a.record, b.record)
}

// A pile is encoded records in the order of their coming.
type pile struct {
	chunks [][]byte
	count  int
}

// A batch is records that wait for a worker.
type batch struct {
	data []byte
	ends []int
}

// A sorter is one worker's piles, and what it sorts them with.
type sorter struct {
	piles [1 << pileBits]pile
	batch *batch // the last one taken, to be filled again

	spare        [][]byte // chunks of piles that were sorted
	refs, sorted []ref
	ends         []int
}

// room returns a chunk that size bytes can be appended to: last, if they fit.
func (s *sorter) room(last []byte, size int) (chunk []byte, fresh bool) {
	if cap(last)-len(last) >= size {
		return last, false
	}
	if n := len(s.spare); n > 0 && size <= chunkBytes {
		chunk, s.spare = s.spare[n-1], s.spare[:n-1]
		return chunk, true
	}
	return make([]byte, 0, max(size, min(2*cap(last), chunkBytes), 1<<10)), true
}

func (s *sorter) add(p *pile, e *entry) {
	var last []byte
	if n := len(p.chunks); n > 0 {
		last = p.chunks[n-1]
	}
	chunk, fresh := s.room(last, recordOverhead+len(e.record))
	if fresh {
		p.chunks = append(p.chunks, nil)
	}
	p.chunks[len(p.chunks)-1] = appendEntry(chunk, e)
	p.count++
}

// reuse takes back chunks that nobody refers to any more.
func (s *sorter) reuse(chunks [][]byte) {
	for _, chunk := range chunks {
		if cap(chunk) == chunkBytes {
			s.spare = append(s.spare, chunk[:0])
		}
	}
}

// take digests a batch and puts its records on 2^topBits piles.
func (s *sorter) take(set *scheme, b *batch, topBits int) {
	const group = 64
	var items [group][]byte
	var words [group][4]uint64
	var e entry
	start := 0
	for ends := b.ends; len(ends) > 0; {
		n := min(len(ends), group)
		for i, end := range ends[:n] {
			items[i] = b.data[start:end]
			start = end
		}
		ends = ends[n:]
		set.digestBatch(items[:n], words[:n], nil)
		for i := range n {
			e.words, e.record = words[i], items[i]
			s.add(&s.piles[e.words[0]>>(64-topBits)], &e)
		}
	}
	s.batch = b
}

// A ref finds an encoded record of a pile: its first word, and its chunk and
// offset.
type ref struct {
	word uint64
	at   uint64
}

func (p *pile) read(e *entry, r ref) { readEntry(e, p.chunks[r.at>>16][r.at&0xffff:]) }

func (p *pile) compare(a, b ref) int {
	if c := cmp.Compare(a.word, b.word); c != 0 {
		return c
	}
	var x, y entry
	p.read(&x, a)
	p.read(&y, b)
	return compareEntries(&x, &y)
}

// sort returns the pile sorted and without duplicates, and takes its chunks.
// It counts on the bits below those that chose the pile, about one record a
// count, and then sorts within a count. Whoever crafts records can make a
// count large; it is still sorted in n·log n.
func (s *sorter) sort(p pile, topBits int) (out pile) {
	refs := slices.Grow(s.refs[:0], p.count)
	for c, chunk := range p.chunks {
		for at := 0; at < len(chunk); {
			refs = append(refs, ref{binary.LittleEndian.Uint64(chunk[at:]), uint64(c)<<16 | uint64(at)})
			at += recordOverhead + int(binary.LittleEndian.Uint32(chunk[at+32:]))
		}
	}
	countBits := min(bits.Len(uint(len(refs))), 16)
	slot := func(r ref) uint64 { return r.word << topBits >> (64 - countBits) }
	ends := slices.Grow(s.ends[:0], 1<<countBits)[:1<<countBits]
	sorted := slices.Grow(s.sorted[:0], len(refs))[:len(refs)]
	s.refs, s.ends, s.sorted = refs, ends, sorted
	clear(ends)
	for _, r := range refs {
		ends[slot(r)]++
	}
	sum := 0
	for i, c := range ends {
		sum, ends[i] = sum+c, sum
	}
	for _, r := range refs {
		i := slot(r)
		sorted[ends[i]] = r
		ends[i]++
	}
	start := 0
	for _, end := range ends {
		if end-start > 1 {
			p.sortRun(sorted[start:end])
		}
		start = end
	}
	var e entry
	for i, r := range sorted {
		if i == 0 || r.word != sorted[i-1].word || p.compare(r, sorted[i-1]) != 0 {
			p.read(&e, r)
			s.add(&out, &e)
		}
	}
	s.reuse(p.chunks)
	return out
}

func (p *pile) sortRun(run []ref) {
	if len(run) > 16 {
		slices.SortFunc(run, p.compare)
		return
	}
	for i := 1; i < len(run); i++ {
		r := run[i]
		j := i
		for ; j > 0 && (r.word < run[j-1].word || r.word == run[j-1].word && p.compare(r, run[j-1]) < 0); j-- {
			run[j] = run[j-1]
		}
		run[j] = r
	}
}

// each calls yield for the records of sorted piles from pile i on, until it
// returns false. The entry is yield's until it returns; its bytes stay.
func each(piles []pile, i int, yield func(e *entry) bool) {
	var e entry
	for ; i < len(piles); i++ {
		for _, chunk := range piles[i].chunks {
			for at := 0; at < len(chunk); at += recordOverhead + len(e.record) {
				if readEntry(&e, chunk[at:]); !yield(&e) {
					return
				}
			}
		}
	}
}

// share returns the first of n blocks, or buckets, that begins in pile i of so
// many; those of pile i-1 end there. What begins in a pile may end in the next.
func share(n uint64, i, piles int) uint64 {
	if i == piles {
		return n
	}
	first, rest := bits.Mul64(n, uint64(i)<<(64-pileBits)) // pile i's least first word; piles is 1 or 1<<pileBits
	if rest != 0 {
		first++
	}
	return first
}
