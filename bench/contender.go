package main

import (
	"math"
	"slices"
	"sort"

	"github.com/FastFilter/xorfilter"
	"github.com/b1cc2673/bloom"
	bitsandblooms "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"
	parquet "github.com/parquet-go/parquet-go/bloom"
)

const rate = 0.01 // of false positives, all filters'

// A contender is one way to know exactly which items are members.
type contender struct {
	name string
	// build takes in the records, into a filter of its own and into known.
	build func(r records, known *exact) lookups
}

// Lookups answer queries in a loop and return how many were members. The loops
// are each contender's own, and plain ones: no call through a pointer, which an
// iterator that is not inlined would be too, is timed with a lookup.
type lookups struct {
	maybe  func(queries) int // the filter alone; nil: there is none
	single func(queries) int
	batch  func(queries) int // nil: there is none
}

// Exact is the map that confirms what a filter lets through. One that is full
// serves any number of contenders.
type exact struct {
	items map[string]struct{}
	full  bool
}

// room prepares an empty map for r.
func (e *exact) room(r records) {
	if !e.full {
		e.items = make(map[string]struct{}, r.n)
	}
}

func (e *exact) add(item []byte) {
	if !e.full {
		e.items[string(item)] = struct{}{}
	}
}

const (
	nameOurs    = "this library"
	nameMap     = "map"
	nameBits    = "bits-and-blooms + map"
	nameBlocked = "blocked filter (stand-in for blobloom) + map"
	nameFuse    = "xorfilter BinaryFuse8 + map"
	nameParquet = "parquet-go split block + map"
)

var contenders = []contender{
	{nameOurs, func(r records, _ *exact) lookups { return snapshotLookups(newSnapshot(r)) }},
	{nameMap, buildMap},
	{nameBits, buildBits},
	{nameBlocked, buildBlocked},
	{nameFuse, buildFuse},
	{nameParquet, buildParquet},
}

func named(name string) contender {
	return contenders[slices.IndexFunc(contenders, func(c contender) bool { return c.name == name })]
}

// An error below is a fault in this program or the library: it ends the run.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newSnapshot(r records) *bloom.Snapshot {
	s, err := bloom.New(bloom.Config{FPRate: rate}, r.all())
	must(err)
	return s
}

func snapshotLookups(s *bloom.Snapshot) lookups {
	const group = 256
	items, results := make([][]byte, 0, group), make([]bloom.Result, group)
	return lookups{
		maybe: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				maybe, err := s.MaybePresent(item)
				must(err)
				if maybe {
					n++
				}
			}
			return n
		},
		single: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				r, err := s.Lookup(item)
				must(err)
				if r.Duplicate {
					n++
				}
			}
			return n
		},
		batch: func(q queries) (n int) {
			for at := 0; at < q.len(); at += group {
				items = items[:0]
				for i := at; i < min(at+group, q.len()); i++ {
					items = append(items, q.item(i))
				}
				must(s.LookupBatch(items, results))
				for _, r := range results[:len(items)] {
					if r.Duplicate {
						n++
					}
				}
			}
			return n
		},
	}
}

func buildMap(r records, known *exact) lookups {
	known.room(r)
	for item := range r.all() {
		known.add(item)
	}
	m := known.items
	return lookups{single: func(q queries) (n int) {
		for i := range q.len() {
			item := q.item(i)
			if _, ok := m[string(item)]; ok {
				n++
			}
		}
		return n
	}}
}

func buildBits(r records, known *exact) lookups {
	f := bitsandblooms.NewWithEstimates(uint(r.n), rate)
	known.room(r)
	for item := range r.all() {
		f.Add(item)
		known.add(item)
	}
	m := known.items
	return lookups{
		maybe: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.Test(item) {
					n++
				}
			}
			return n
		},
		single: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.Test(item) {
					if _, ok := m[string(item)]; ok {
						n++
					}
				}
			}
			return n
		},
	}
}

func buildBlocked(r records, known *exact) lookups {
	f := newBlocked(r.n)
	known.room(r)
	for item := range r.all() {
		f.add(xxhash.Sum64(item))
		known.add(item)
	}
	m := known.items
	return lookups{
		maybe: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.has(xxhash.Sum64(item)) {
					n++
				}
			}
			return n
		},
		single: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.has(xxhash.Sum64(item)) {
					if _, ok := m[string(item)]; ok {
						n++
					}
				}
			}
			return n
		},
	}
}

func buildFuse(r records, known *exact) lookups {
	keys := make([]uint64, 0, r.n)
	known.room(r)
	for item := range r.all() {
		keys = append(keys, xxhash.Sum64(item))
		known.add(item)
	}
	f, err := xorfilter.PopulateBinaryFuse8(keys)
	must(err)
	m := known.items
	return lookups{
		maybe: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.Contains(xxhash.Sum64(item)) {
					n++
				}
			}
			return n
		},
		single: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.Contains(xxhash.Sum64(item)) {
					if _, ok := m[string(item)]; ok {
						n++
					}
				}
			}
			return n
		},
	}
}

func buildParquet(r records, known *exact) lookups {
	f := make(parquet.SplitBlockFilter, splitBlocks(r.n))
	known.room(r)
	for item := range r.all() {
		f.Insert(xxhash.Sum64(item))
		known.add(item)
	}
	m := known.items
	return lookups{
		maybe: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.Check(xxhash.Sum64(item)) {
					n++
				}
			}
			return n
		},
		single: func(q queries) (n int) {
			for i := range q.len() {
				item := q.item(i)
				if f.Check(xxhash.Sum64(item)) {
					if _, ok := m[string(item)]; ok {
						n++
					}
				}
			}
			return n
		},
	}
}

// splitBlocks is how many blocks of a split-block filter keep n items at the
// rate. A block has eight words of 32 bits, one bit of each set by an item; the
// number of its items is taken for Poisson's. (The package itself sizes by
// whole bits an item, which would be 10 or 11.)
func splitBlocks(n int) int {
	return 1 + sort.Search(n, func(blocks int) bool {
		load := float64(n) / float64(blocks+1)
		p, mean := math.Exp(-load), 0.0
		for items := 0.0; items < load+10*math.Sqrt(load)+10; items++ {
			mean += p * math.Pow(1-math.Pow(31.0/32, items), 8)
			p *= load / (items + 1)
		}
		return mean <= rate
	})
}
