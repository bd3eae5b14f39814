package bloom

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"

	"github.com/b1cc2673/bloom/internal/digest"
	"github.com/b1cc2673/bloom/internal/mapping"
)

// Batches wait for memory once for many items, not once for each: in a group
// of items every stage asks for what the next one will read. Digests are
// computed side by side and ask for filter lines, filter lines decide and ask
// for index entries, those ask for bucket heads, heads for the bytes of
// candidates, which are compared at last.

// groupSize is how many items are under way at once: more than memory can
// answer at a time, and few enough for what they wait for to stay cached.
const groupSize = 256

// A group is the state between stages, on the stack of one call.
type group struct {
	words [groupSize][4]uint64
	maybe [groupSize]int32  // items that the filter admits
	at    [groupSize]uint64 // for each of those, what the next stage reads
}

// checkBatch refuses a batch before anything is written.
func (f *Filter) checkBatch(items [][]byte, results int) error {
	if results < len(items) {
		return fmt.Errorf("%w: %d results for a batch of %d items", ErrConfig, results, len(items))
	}
	block := f.scheme.block
	for i, item := range items {
		if block && uint64(len(item)) <= math.MaxUint32 {
			continue
		}
		if err := f.scheme.checkItem(item); err != nil {
			return fmt.Errorf("%w (item %d of the batch)", err, i)
		}
	}
	return nil
}

// filter asks the filter for all items of a group, whose digests it
// leaves in words.
func (g *group) filter(f *Filter, items [][]byte) (maybe []int32) {
	f.scheme.digestBatch(items, g.words[:], f.bits)
	n := 0
	for i := range items {
		g.maybe[n] = int32(i)
		if f.hasDigest(&g.words[i]) {
			n++
		}
	}
	return g.maybe[:n]
}

// MaybePresentBatch is [Filter.MaybePresent] for many items at once:
// results[i] is for items[i]. More results than items are left as they are,
// fewer are ErrConfig. If an item is not admitted the error names its index,
// and no result has been written.
func (f *Filter) MaybePresentBatch(items [][]byte, results []bool) (err error) {
	if err := f.open(); err != nil {
		return err
	}
	if err := f.checkBatch(items, len(results)); err != nil {
		return err
	}
	if f.mapping != nil {
		defer runtime.KeepAlive(f.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	if !f.scheme.block {
		for i, item := range items {
			results[i] = f.has(item)
		}
		return nil
	}
	var g group
	for len(items) > 0 {
		n := min(len(items), groupSize)
		clear(results[:n])
		for _, i := range g.filter(f, items[:n]) {
			results[i] = true
		}
		items, results = items[n:], results[n:]
	}
	return nil
}

// MaybePresentBatch is [Filter.MaybePresentBatch] of the snapshot's filter.
func (s *Snapshot) MaybePresentBatch(items [][]byte, results []bool) error {
	if err := s.open(); err != nil {
		return err
	}
	return s.filter.MaybePresentBatch(items, results)
}

// LookupBatch is [Snapshot.Lookup] for many items at once, and several times
// as fast: results[i] is for items[i]. More results than items are left as
// they are, fewer are ErrConfig. If an item is not admitted the error names
// its index, and no result has been written. After another error, of a file
// that is not held in memory, the results up to the index that it names are
// good.
func (s *Snapshot) LookupBatch(items [][]byte, results []Result) error {
	if err := s.open(); err != nil {
		return err
	}
	if err := s.filter.checkBatch(items, len(results)); err != nil {
		return err
	}
	if !s.filter.scheme.block {
		for i, item := range items {
			r, _, err := s.find(item)
			if err != nil {
				return fmt.Errorf("%w (item %d of the batch)", err, i)
			}
			results[i] = r
		}
		return nil
	}
	var g group
	for first := 0; first < len(items); first += groupSize {
		end := min(first+groupSize, len(items))
		if i, err := s.findGroup(&g, items[first:end], results[first:end]); err != nil {
			return fmt.Errorf("%w (item %d of the batch)", err, first+i)
		}
	}
	return nil
}

// findGroup looks up the items of a group. With an error it returns which
// item met it; the results before that one are good.
func (s *Snapshot) findGroup(g *group, items [][]byte, results []Result) (at int, err error) {
	if s.file.mapping != nil {
		defer runtime.KeepAlive(s.file.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	clear(results)
	maybe := g.filter(s.filter, items)
	s.set.askHeads(g, maybe)
	if s.set.held {
		s.set.findHeld(g, items, maybe, results)
		return 0, nil
	}
	for _, i := range maybe {
		at = int(i)
		if results[i], _, err = s.confirm(&g.words[i], items[i]); err != nil {
			break
		}
	}
	return at, err
}

// askHeads prefetches the heads of the buckets that a group's candidates are
// in, unless they are behind a reader, and leaves in g.at where those begin.
func (s *frozenSet) askHeads(g *group, maybe []int32) {
	at := g.at[:len(maybe)]
	for c, i := range maybe {
		at[c] = 8 * s.bucket(g.words[i])
	}
	digest.Prefetch(s.index, at, 0)
	for c := range at {
		at[c] = binary.LittleEndian.Uint64(s.index[at[c]:])
	}
	digest.Prefetch(s.data, at, int(s.headSize(recordsPerBucket, 0)))
}

// findHeld decides on a group's candidates where the set is held.
func (s *frozenSet) findHeld(g *group, items [][]byte, maybe []int32, results []Result) {
	at := g.at[:len(maybe)]
	longest := 1
	for c, i := range maybe {
		longest = max(longest, len(items[i]))
		n, first := s.locate(s.data[at[c]:cap(s.data)], &g.words[i], len(items[i]))
		at[c] += uint64(first)
		if n < 0 {
			at[c] = uint64(int64(n)) // none or unclear, and no offset
		}
	}
	digest.Prefetch(s.data, at, min(longest-1, 63)) // a second line only where records reach into it
	for c, i := range maybe {
		r := Result{MaybePresent: true, ExactChecked: true}
		switch item := items[i]; int64(at[c]) {
		case none:
		case unclear:
			_, r.Duplicate, _ = s.find(&g.words[i], item)
		default:
			r.Duplicate = bytes.Equal(s.data[at[c]:at[c]+uint64(len(item))], item)
			if !r.Duplicate { // one in some hundreds: there may be a second candidate
				_, r.Duplicate, _ = s.find(&g.words[i], item)
			}
		}
		results[i] = r
	}
}
