package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fabricated is a set of records whose digests are chosen by the test, which
// no caller can do.
func fabricated(entries []entry) *frozenSet {
	var w sorter
	for i := range entries {
		w.add(&w.piles[0], &entries[i])
	}
	p := w.sort(w.piles[0], 0)
	s := newFrozenSet(uint64(p.count))
	s.fillBuckets([]pile{p}, s.fillIndex([]pile{p}))
	return &s
}

// Buckets of every count around the escape, of every length code, with equal
// tags and with digests that collide whole.
func TestBucketShapes(t *testing.T) {
	for _, count := range []int{0, 1, 7, 8, 9, 61, 62, 63, 64, 1000} {
		for _, longest := range []int{0, 1, 255, 256, 65535, 65536} {
			for _, tags := range []uint64{1, 256} {
				var entries []entry
				for i := range count {
					record := fmt.Append(nil, i)
					if i == count/2 {
						record = append(record, make([]byte, max(0, longest-len(record)))...)
					}
					// All in the first bucket; with one tag, one digest too.
					entries = append(entries, entry{[4]uint64{0, 0, 0, uint64(i) % tags}, record})
				}
				s := fabricated(entries)
				seen := make([]bool, count)
				for _, e := range entries {
					o, ok, _ := s.find(&e.words, e.record)
					if !ok || o >= uint64(count) || seen[o] {
						t.Fatalf("%d records, longest %d, %d tags: %d, %t", count, longest, tags, o, ok)
					}
					seen[o] = true
					if _, ok, _ := s.find(&e.words, append(slices.Clone(e.record), 'x')); ok {
						t.Fatal("false duplicate")
					}
				}
				if _, ok, _ := s.find(new([4]uint64), []byte("absent")); ok {
					t.Fatal("false duplicate")
				}
				if _, ok, _ := s.find(&[4]uint64{^uint64(0)}, []byte("absent")); ok {
					t.Fatal("false duplicate")
				}
				if s.offset(s.buckets) != uint64(len(s.data)) {
					t.Fatalf("%d bytes, the index says %d", len(s.data), s.offset(s.buckets))
				}
				// Behind a reader, the same bytes in a few reads; each that fails is noticed.
				behind := *s
				file := &readerAt{file: s.data, at: -1, wrong: func(int) (int, error) { return 0, errBroken }}
				behind.data, behind.held, behind.source = nil, false, file
				for b := range s.buckets {
					from, to := s.offset(b), s.offset(b+1)
					behind.most = to - from // all that it takes
					k, err := behind.readBucket(b)
					if err == nil {
						_, err = behind.readRecords(&k)
					}
					n, _ := shape(s.data[from:])
					if err != nil || !bytes.Equal(k.data, s.data[from:to]) || k.count != int(n) || len(k.tags) != k.count || len(k.lengths) != k.count<<k.code {
						t.Fatalf("%d records, longest %d: bucket %d: %d bytes of %d, %v", count, longest, b, len(k.data), to-from, err)
					}
				}
				behind.most = mostMemory
				for _, at := range []uint64{0, headRead - 1, headRead, s.offset(1) - 1} {
					if file.at = int64(at); at < s.offset(1) {
						k, err := behind.readBucket(0)
						if err == nil {
							_, err = behind.readRecords(&k)
						}
						if !errors.Is(err, errBroken) {
							t.Fatalf("%d records, longest %d: broken at %d: %v", count, longest, at, err)
						}
					}
				}
			}
		}
	}
}

// Digests at the edges of the piles that are built at the same time.
func TestPileEdges(t *testing.T) {
	var entries []entry
	for i := range uint64(256) {
		for _, w := range []uint64{i << 56, i<<56 + 1, i<<56 - 1, i<<56 | 1<<55} {
			entries = append(entries, entry{[4]uint64{w}, fmt.Append(nil, w)})
		}
	}
	for n := 1; n <= len(entries); n = n*3/2 + 1 {
		some := entries[:n]
		s := sorter{}
		for _, e := range some {
			s.add(&s.piles[e.words[0]>>56], &e)
		}
		piles := make([]pile, 256)
		total := uint64(0)
		for i := range piles {
			piles[i] = s.sort(s.piles[i], pileBits)
			total += uint64(piles[i].count)
		}
		many, one := newFrozenSet(total), fabricated(slices.Clone(some))
		many.fillBuckets(piles, many.fillIndex(piles))
		if total != uint64(n) || !slices.Equal(many.index, one.index) || !slices.Equal(many.data, one.data) {
			t.Fatalf("%d records: in 256 piles other bytes than in one", n)
		}
		for _, e := range some {
			if _, ok, _ := many.find(&e.words, e.record); !ok {
				t.Fatalf("%d records: %x is missed", n, e.words[0])
			}
		}
	}
}

// locate finds what scan finds first, or says that it does not know, for
// every count, place and neighbourhood of tags and lengths.
func TestLocateIsScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 20_000 {
		var entries []entry
		for range rng.IntN(20) {
			entries = append(entries, entry{[4]uint64{3: rng.Uint64N(3)}, make([]byte, rng.IntN(3)+rng.IntN(2)*rng.IntN(300))})
			rng.Uint64()
			for i := range entries[len(entries)-1].record {
				entries[len(entries)-1].record[i] = byte(rng.IntN(2))
			}
		}
		s := newFrozenSet(uint64(len(entries)))
		s.buckets = 1
		data := s.appendBucket(nil, 0, 0, entries)
		end := len(data)
		data = append(data, make([]byte, slack)...)
		for i := range data[end:] { // what follows is not zero, in general
			data[end+i] = byte(rng.IntN(3))
		}
		for tag := range uint64(4) {
			for _, length := range []int{0, 1, 2, 3, 255, 256, 300} {
				w := [4]uint64{3: tag}
				first, at := none, 0
				n, code := shape(data)
				size := s.readHead(data, int(n), code).size
				for i, e := range entries {
					if e.words[3] == tag && len(e.record) == length {
						first, at = i, size
						break
					}
					size += len(e.record)
				}
				got, gotAt := s.locate(data, &w, length)
				if got == unclear && (len(entries) > 16 || data[0]&3 != 0 || length > 255) {
					continue
				}
				if got != first || got >= 0 && gotAt != at {
					t.Fatalf("%d records, tag %d, length %d: %d at %d, want %d at %d", len(entries), tag, length, got, gotAt, first, at)
				}
			}
		}
	}
}

// Shapes that nobody verified: only what appendBucket makes and what fits, and
// no more bytes are looked at than there are.
func TestHeadShape(t *testing.T) {
	s := newFrozenSet(100)
	head := func(first byte, count uint64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{first}, count)
	}
	for _, c := range []struct {
		b    []byte
		size uint64
		fine bool
	}{
		{head(0, 0), s.headSize(0, 0), true},
		{head(0, 0), s.headSize(0, 0) - 1, false},
		{[]byte{escaped << 2}, 1, false},
		{[]byte{escaped<<2 | 2, 70, 0, 0, 0, 0, 0, 0}, 8, false},
		{head(5<<2, 0), s.headSize(5, 0), true},
		{head(5<<2, 0), s.headSize(5, 0) - 1, false},
		{head(5<<2|1, 0), s.headSize(5, 1), true},
		{head(5<<2|2, 0), s.headSize(5, 2) - 1, false},
		{head(5<<2|3, 0), 1000, false},
		{head(62<<2, 0), 1000, true},
		{head(escaped<<2, 62), 1000, false},
		{head(escaped<<2, 0), 1000, false},
		{head(escaped<<2, 63), s.headSize(63, 0), true},
		{head(escaped<<2, 63), s.headSize(63, 0) - 1, false},
		{head(escaped<<2, 100), 1000, true},
		{head(escaped<<2, 101), 1000, false}, // than there are records
		{head(escaped<<2, 1<<63), 1000, false},
		{head(escaped<<2|2, math.MaxUint64), math.MaxInt64, false},
	} {
		count, code, err := s.headShape(c.b, c.size)
		if (err == nil) != c.fine {
			t.Errorf("%x of a bucket of %d bytes: %d, %d, %v", c.b, c.size, count, code, err)
		}
	}
}
