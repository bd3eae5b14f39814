package bloom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// A forgedBucket is a bucket of a file that is to be forged: what a head
// claims and what there is, which need not agree.
type forgedBucket struct {
	escape  bool
	count   uint64
	code    int
	first   uint64
	tags    []byte
	lengths []uint64
	records [][]byte
}

// A forgery is a file taken apart. Put together again, all that reseal
// computes is right, and the rest is as the forger wants it.
type forgery struct {
	h       header
	key     []byte
	filter  []byte
	buckets []forgedBucket
	index   func(offsets []uint64) // changes the right ones; nil: does not
}

// takeApart takes apart a file that this package wrote.
func takeApart(t testing.TB, file, key []byte) *forgery {
	t.Helper()
	s, err := Read(bytes.NewReader(file), OpenOptions{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	f := &forgery{h: *s.headerOf(), key: key, filter: s.PackedBits()}
	for b := range s.set.buckets {
		var bucket forgedBucket
		h, err := s.set.checkBucket(b, func(e entry) bool {
			bucket.tags = append(bucket.tags, tag(e.words))
			bucket.lengths = append(bucket.lengths, uint64(len(e.record)))
			bucket.records = append(bucket.records, slices.Clone(e.record))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		bucket.count, bucket.code, bucket.first, bucket.escape = uint64(h.count), h.code, h.first, h.count >= escaped
		f.buckets = append(f.buckets, bucket)
	}
	return f
}

// bytes are a bucket's, with zeros for checksums.
func (b *forgedBucket) bytes(width int) []byte {
	le := binary.LittleEndian
	out := []byte{byte(b.code) | byte(b.count<<2)}
	if b.escape {
		out = le.AppendUint64([]byte{byte(b.code) | escaped<<2}, b.count)
	}
	out = append(out, le.AppendUint64(nil, b.first)[:width]...)
	out = append(append(out, 0, 0, 0, 0), b.tags...)
	for _, n := range b.lengths {
		out = append(out, le.AppendUint64(nil, n)[:1<<b.code]...)
	}
	return append(append(out, 0, 0, 0, 0), bytes.Join(b.records, nil)...)
}

func (f *forgery) file() []byte {
	set := newFrozenSet(f.h.n)
	var buckets, index []byte
	offsets := []uint64{0}
	for i := range f.buckets {
		buckets = append(buckets, f.buckets[i].bytes(set.width)...)
		offsets = append(offsets, uint64(len(buckets)))
	}
	if f.index != nil {
		f.index(offsets)
	}
	for _, o := range offsets {
		index = binary.LittleEndian.AppendUint64(index, o)
	}
	h := f.h
	h.setBytes = uint64(len(buckets))
	l, _ := h.layout()
	out := make([]byte, l.total)
	copy(out, h.append(nil))
	copy(out[headerSize:], f.filter)
	copy(out[l.index:], index)
	copy(out[l.buckets:], buckets)
	return reseal(out, f.key)
}

// drop takes record i out of the bucket.
func (b *forgedBucket) drop(i int) {
	b.count--
	b.tags = slices.Delete(b.tags, i, i+1)
	b.lengths = slices.Delete(b.lengths, i, i+1)
	b.records = slices.Delete(b.records, i, i+1)
}

// insert puts a record in the place i.
func (b *forgedBucket) insert(i int, tag byte, record []byte) {
	b.count++
	b.tags = slices.Insert(b.tags, i, tag)
	b.lengths = slices.Insert(b.lengths, i, uint64(len(record)))
	b.records = slices.Insert(b.records, i, record)
}

// swap exchanges two records with all that is theirs.
func (b *forgedBucket) swap(i, j int) {
	b.tags[i], b.tags[j] = b.tags[j], b.tags[i]
	b.lengths[i], b.lengths[j] = b.lengths[j], b.lengths[i]
	b.records[i], b.records[j] = b.records[j], b.records[i]
}

// varied is n different records of 0 to 16 bytes, no zero byte in them.
func varied(n int) (records [][]byte) {
	for i := range n {
		r := fmt.Appendf(nil, "%d/", i)
		for len(r) < i*7%17 {
			r = append(r, byte('a'+i%26))
		}
		if i == 0 {
			r = nil
		}
		records = append(records, r)
	}
	return records
}

// A hostile case changes a file that is otherwise right. meets is which
// records' lookups must meet what is wrong: all of the changed bucket, those
// that the change displaced (by their place), or none, where a bucket's own
// bytes cannot show it and Verify must.
type hostileCase struct {
	name   string
	change func(f *forgery, b *forgedBucket)
	all    bool
	some   []int
}

// hostileContents are changes of the bucket b of f, which has at least four
// records, and of what is outside the buckets.
func hostileContents() (cases []hostileCase) {
	add := func(all bool, some []int, format string, change func(f *forgery, b *forgedBucket), args ...any) {
		cases = append(cases, hostileCase{fmt.Sprintf(format, args...), change, all, some})
	}
	for _, x := range append([]uint64{62, 63, 64, 1 << 31, 1 << 61, 1 << 62}, extremes...) {
		add(true, nil, "escaped count %d", func(_ *forgery, b *forgedBucket) { b.escape, b.count = true, x }, x)
		add(true, nil, "length %d", func(_ *forgery, b *forgedBucket) { b.code, b.lengths[1] = 2, x }, x)
	}
	for _, x := range []uint64{0, 1, 62} {
		add(true, nil, "count %d", func(_ *forgery, b *forgedBucket) { b.count = x }, x)
	}
	add(true, nil, "escaped count, not canonical", func(_ *forgery, b *forgedBucket) { b.escape = true })
	add(true, nil, "count escaped without a count", func(_ *forgery, b *forgedBucket) { b.count = escaped })
	add(true, nil, "count one less", func(_ *forgery, b *forgedBucket) { b.count-- })
	add(true, nil, "count one more", func(_ *forgery, b *forgedBucket) { b.count++ })
	for _, code := range []int{1, 2, 3} {
		add(true, nil, "length code %d, not the least", func(_ *forgery, b *forgedBucket) { b.code = code }, code)
	}
	add(true, nil, "lengths one too long together", func(_ *forgery, b *forgedBucket) { b.lengths[0]++ })
	add(true, nil, "lengths one too short together", func(_ *forgery, b *forgedBucket) {
		b.lengths[slices.IndexFunc(b.lengths, func(n uint64) bool { return n > 0 })]--
	})
	add(true, nil, "a byte after the records", func(_ *forgery, b *forgedBucket) { b.records = append(b.records, []byte{0}) })
	add(true, nil, "lengths below 2^32 that add up when they wrap", func(_ *forgery, b *forgedBucket) {
		b.code, b.lengths[0], b.lengths[1] = 2, b.lengths[0]-1<<31, b.lengths[1]+1<<31
	})
	for _, x := range []uint64{0, 1, 197, 198, 255} {
		add(x >= 197, nil, "first ordinal %d", func(_ *forgery, b *forgedBucket) { b.first = x }, x)
	}
	add(false, nil, "first ordinal one less", func(_ *forgery, b *forgedBucket) { b.first-- })
	add(false, nil, "first ordinal one more", func(_ *forgery, b *forgedBucket) { b.first++ })
	add(false, []int{1, 2}, "two records exchanged", func(_ *forgery, b *forgedBucket) { b.swap(1, 2) })
	add(false, []int{0, 3}, "first and last of four exchanged", func(_ *forgery, b *forgedBucket) { b.swap(0, 3) })
	add(false, []int{1}, "a record twice", func(f *forgery, b *forgedBucket) {
		b.insert(1, b.tags[1], b.records[1])
		b.drop(3)
	})
	add(false, []int{2}, "a record twice, counted", func(f *forgery, b *forgedBucket) {
		b.insert(2, b.tags[2], b.records[2])
		f.shift(b, 1)
	})
	add(false, nil, "a record missing", func(f *forgery, b *forgedBucket) {
		b.drop(2)
		f.shift(b, -1)
	})
	add(false, nil, "a record missing, its ordinal left out", func(_ *forgery, b *forgedBucket) { b.drop(2) })
	add(false, nil, "wrong tag", func(_ *forgery, b *forgedBucket) { b.tags[1]++ })
	add(false, nil, "tags exchanged", func(_ *forgery, b *forgedBucket) { b.tags[1], b.tags[2] = b.tags[2], b.tags[1] })
	add(false, nil, "other bytes in a record", func(_ *forgery, b *forgedBucket) { b.records[1][0] ^= 1 })
	add(false, nil, "a record in the next bucket", func(f *forgery, b *forgedBucket) {
		next := f.beside(b, 1)
		last := len(b.records) - 1
		next.insert(0, b.tags[last], b.records[last])
		next.first--
		b.drop(last)
	})
	add(false, nil, "a record in the bucket before", func(f *forgery, b *forgedBucket) {
		before := f.beside(b, -1)
		before.insert(len(before.records), b.tags[0], b.records[0])
		b.drop(0)
		b.first++
	})
	add(false, nil, "n one less", func(f *forgery, _ *forgedBucket) { f.h.n-- })
	add(false, nil, "n one more", func(f *forgery, _ *forgedBucket) { f.h.n++ })
	add(false, nil, "a bit too many in the filter", func(f *forgery, _ *forgedBucket) {
		for i := range f.filter {
			if f.filter[i] != 0xff {
				f.filter[i] |= f.filter[i] + 1
				return
			}
		}
	})
	add(false, nil, "a bit missing in the filter", func(f *forgery, _ *forgedBucket) {
		for i := range f.filter {
			if f.filter[i] != 0 {
				f.filter[i] &= f.filter[i] - 1
				return
			}
		}
	})
	add(false, nil, "another seed", func(f *forgery, _ *forgedBucket) { f.h.seed = []byte("other") })
	add(false, nil, "another k", func(f *forgery, _ *forgedBucket) { f.h.k-- })
	return cases
}

// beside is the bucket so many after b.
func (f *forgery) beside(b *forgedBucket, by int) *forgedBucket {
	for i := range f.buckets {
		if &f.buckets[i] == b {
			return &f.buckets[i+by]
		}
	}
	return nil
}

// honest reports whether the forged file is what a writer writes for the
// records in it: in a saturated filter a record more leaves no trace, say.
func (f *forgery) honest(t *testing.T, file []byte) bool {
	var records [][]byte
	for _, b := range f.buckets {
		records = append(records, b.records...)
	}
	cfg := Config{Protocol: f.h.protocol, Bits: f.h.m, Hashes: f.h.k, Seed: f.h.seed, Key: f.key}
	return bytes.Equal(file, asFile(t, mustNew(t, cfg, records...)))
}

// shift makes the ordinals after b, and n, follow from one record more or less.
func (f *forgery) shift(b *forgedBucket, by int) {
	f.h.n += uint64(by)
	passed := false
	for i := range f.buckets {
		if passed {
			f.buckets[i].first += uint64(by)
		}
		passed = passed || &f.buckets[i] == b
	}
}

// hostileN has 25 buckets with one record more or less, and ordinals of one byte.
const hostileN = 197

// Contents that are not what a writer writes, under checksums, digests, salts
// and key checks that are right: Read and Verify refuse each, a lookup that
// meets what can be seen from there refuses it, and no lookup ever takes what
// is no record for one.
func TestHostileContents(t *testing.T) {
	key := []byte("0123456789abcdef")
	court := newCourt(t)
	cfgs := []Config{{}, {Protocol: ESBloomV1, Bits: 2000, Hashes: 3}, {Bits: 512, Hashes: 14}, {Protocol: BLAKE2b, Key: key, Seed: []byte("s")}}
	if testing.Short() {
		cfgs = cfgs[:1]
	}
	for _, cfg := range cfgs {
		records := varied(hostileN)
		member := map[string]bool{}
		for _, r := range records {
			member[string(r)] = true
		}
		file := asFile(t, mustNew(t, cfg, records...))
		if got := takeApart(t, file, cfg.Key).file(); !bytes.Equal(got, file) {
			t.Fatalf("%v: put together again, a file is another", cfg)
		}
		for _, c := range hostileContents() {
			f := takeApart(t, file, cfg.Key)
			target := slices.IndexFunc(f.buckets, func(b forgedBucket) bool { return b.count == 4 || b.count == 5 })
			if protocols[cfg.Protocol].mostSeed == 0 && c.name == "another seed" {
				continue
			}
			before := takeApart(t, file, cfg.Key).buckets[target]
			c.change(f, &f.buckets[target])
			name := fmt.Sprintf("%v: %s", cfg, c.name)
			forged := f.file()
			if f.honest(t, forged) {
				if cfg.Bits != 512 || c.all || c.some != nil {
					t.Errorf("%s changes nothing", name)
				}
				continue
			}
			for _, b := range f.buckets { // now records of the forged file
				for _, r := range b.records {
					member[string(r)] = true
				}
			}

			var opened map[string]verifier
			var errs map[string]error
			got := allocated(func() { opened, errs = court.open(kindSnapshot, forged, OpenOptions{Key: cfg.Key}) })
			if most := 16*uint64(len(forged)) + 4<<20; got > most {
				t.Errorf("%s: %d bytes allocated for a file of %d", name, got, len(forged))
			}
			for way, err := range errs {
				if way == "Read" {
					if !isOnly(err, ErrCorrupt) {
						t.Errorf("%s: Read: %v", name, err)
					}
					continue
				}
				if err != nil {
					if !isOnly(err, ErrCorrupt) {
						t.Errorf("%s, %s: %v", name, way, err)
					}
					continue
				}
				s := opened[way].(*Snapshot)
				if err := s.Verify(); !isOnly(err, ErrCorrupt) {
					t.Errorf("%s, %s: Verify: %v", name, way, err)
				}
				for i, r := range before.records {
					if _, err := s.Lookup(r); !isOnly(err, ErrCorrupt) && (c.all || slices.Contains(c.some, i)) {
						t.Errorf("%s, %s: lookup of record %d of the bucket: %v", name, way, i, err)
					}
				}
				asked := append(slices.Clone(records), varied(250)[hostileN:]...)
				for _, b := range f.buckets {
					asked = append(asked, b.records...)
				}
				for _, item := range asked {
					r, o, err := s.LookupOrdinal(item)
					if err != nil && !isOnly(err, ErrCorrupt) || err == nil && r.Duplicate && (!member[string(item)] || o >= f.h.n) {
						t.Errorf("%s, %s: lookup of %q: %+v, ordinal %d, %v", name, way, item, r, o, err)
					}
				}
				seen := 0
				for r, err := range s.Records() {
					if err != nil {
						if !isOnly(err, ErrCorrupt) || r != nil {
							t.Errorf("%s, %s: Records: %q, %v", name, way, r, err)
						}
						break
					}
					if seen++; !member[string(r)] {
						t.Errorf("%s, %s: record %q", name, way, r)
					}
				}
			}
		}
	}
}

// Ordinals that do not go on from one bucket to the next, wherever that is:
// buckets are verified in runs, at the same time.
func TestHostileOrdinals(t *testing.T) {
	file := asFile(t, mustNew(t, Config{}, eightBytes(4800)...)) // 600 buckets
	for _, buckets := range [][2]int{{0, 600}, {1, 2}, {255, 256}, {256, 512}, {511, 512}, {512, 600}, {599, 600}} {
		f := takeApart(t, file, nil)
		for i := buckets[0]; i < buckets[1]; i++ {
			f.buckets[i].first++
		}
		forged := f.file()
		s, err := OpenReaderAt(bytes.NewReader(forged), int64(len(forged)), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.verify(t.Context(), production); !isOnly(err, ErrCorrupt) {
			t.Errorf("buckets %d: %v", buckets, err)
		}
		if _, err := Read(bytes.NewReader(forged), OpenOptions{}); !isOnly(err, ErrCorrupt) {
			t.Errorf("buckets %d: Read: %v", buckets, err)
		}
	}
}

// An index of offsets that are out of order, out of range or do not fit the
// buckets is refused where the index is loaded; mapped, it is met by lookups
// and Verify, and nothing is read outside the buckets.
func TestHostileIndex(t *testing.T) {
	court := newCourt(t)
	records := varied(hostileN)
	file := asFile(t, mustNew(t, Config{Bits: 512, Hashes: 14}, records...))
	type change struct {
		name string
		do   func(offsets []uint64)
		late bool // plausible by itself: met at the bucket
	}
	changes := []change{
		{"reversed", slices.Reverse[[]uint64], false},
		{"all from 1", func(o []uint64) {
			for i := range o {
				o[i]++
			}
		}, false},
		{"all the last", func(o []uint64) {
			for i := range o[1:] {
				o[i+1] = o[len(o)-1]
			}
		}, false},
		{"two exchanged", func(o []uint64) { o[7], o[8] = o[8], o[7] }, false},
		{"overlapping", func(o []uint64) { o[8] = o[7] - 1 }, false},
		{"a bucket of no bytes", func(o []uint64) { o[8] = o[7] }, false},
		{"a bucket shorter than a head", func(o []uint64) { o[8] = o[7] + 9 }, false},
		{"a bucket of an empty head's length", func(o []uint64) { o[8] = o[7] + 10 }, true},
		{"a bucket one shorter", func(o []uint64) { o[8]-- }, true},
		{"a bucket one longer", func(o []uint64) { o[8]++ }, true},
		{"the last bucket shorter than a head", func(o []uint64) { o[len(o)-2] = o[len(o)-1] - 9 }, false},
		{"last one less", func(o []uint64) { o[len(o)-1]-- }, false},
		{"last one more", func(o []uint64) { o[len(o)-1]++ }, false},
	}
	for _, i := range []int{0, 1, 12, 24, 25} {
		for _, x := range extremes {
			if i != 0 || x != 0 {
				changes = append(changes, change{fmt.Sprintf("offset %d is %d", i, x), func(o []uint64) { o[i] = x }, false})
			}
		}
	}
	for _, c := range changes {
		f := takeApart(t, file, nil)
		f.index = c.do
		forged := f.file()
		var opened map[string]verifier
		var errs map[string]error
		if got := allocated(func() { opened, errs = court.open(kindSnapshot, forged, OpenOptions{}) }); got > 16*uint64(len(forged))+4<<20 {
			t.Errorf("%s: %d bytes allocated for a file of %d", c.name, got, len(forged))
		}
		for way, err := range errs {
			mayOpen := way == "Open mapped" || c.late && way != "Read"
			if err != nil && !isOnly(err, ErrCorrupt) || err == nil && !mayOpen {
				t.Errorf("%s, %s: %v", c.name, way, err)
			}
			if err != nil {
				continue
			}
			s := opened[way].(*Snapshot)
			if err := s.Verify(); !isOnly(err, ErrCorrupt) {
				t.Errorf("%s, %s: Verify: %v", c.name, way, err)
			}
			met := 0
			for _, r := range records {
				got, err := s.Lookup(r)
				if err != nil && isOnly(err, ErrCorrupt) {
					met++
				} else if err != nil || !got.Duplicate {
					t.Errorf("%s, %s: %q: %+v, %v", c.name, way, r, got, err)
				}
			}
			for _, r := range varied(300)[hostileN:] {
				if got, err := s.Lookup(r); err != nil && !isOnly(err, ErrCorrupt) || got.Duplicate {
					t.Errorf("%s, %s: %q: %+v, %v", c.name, way, r, got, err)
				}
			}
			if met == 0 {
				t.Errorf("%s, %s: no lookup meets it", c.name, way)
			}
		}
	}
}

// Padding that is not zero, and bits beyond m.
func TestHostilePadding(t *testing.T) {
	court := newCourt(t)
	for _, c := range samples(t) {
		h, err := parseHeader(c.file)
		if err != nil {
			t.Fatal(err)
		}
		l, _ := h.layout()
		gaps := [][2]uint64{{headerSize + l.filter, l.index}, {l.index + l.indexLen, l.checks}}
		if c.kind == kindSnapshot {
			gaps = append(gaps, [2]uint64{l.checks + l.checksLen, l.buckets})
		}
		hostile := func(name string, at uint64, bit byte) {
			t.Helper()
			forged := slices.Clone(c.file)
			forged[at] |= bit
			forged = reseal(forged, c.cfg.Key)
			opened, errs := court.open(c.kind, forged, OpenOptions{Key: c.cfg.Key})
			for way, err := range errs {
				// A mapped filter alone verifies its bits and nothing else.
				if strings.Contains(way, "mapped") && err == nil && (c.kind == kindSnapshot || at < headerSize+l.filter) {
					err = opened[way].Verify()
				} else if way == "OpenFilter mapped" && err == nil {
					continue
				}
				if !isOnly(err, ErrCorrupt) {
					t.Errorf("%s: %s, %s: %v", c.name, name, way, err)
				}
			}
		}
		for i, gap := range gaps {
			for at := gap[0]; at < gap[1]; at += 1 + (gap[1]-gap[0])/3 {
				hostile(fmt.Sprintf("gap %d, byte %d", i, at-gap[0]), at, 1<<(at%8))
			}
			if gap[0] < gap[1] {
				hostile(fmt.Sprintf("gap %d, last byte", i), gap[1]-1, 0x80)
			}
		}
		for p := h.m; p < 8*l.filter; p++ {
			hostile(fmt.Sprintf("bit %d of %d", p, h.m), headerSize+p/8, 1<<(p%8))
		}
	}
}

// The index and buckets of one snapshot under the header and filter of
// another: heads are salted with the filter they were built with, so that the
// first lookup refuses them. With heads made to fit, or where two filters are
// equal as saturated ones are, Verify and Read see it.
func TestSwappedSets(t *testing.T) {
	court := newCourt(t)
	for _, cfg := range []Config{{Bits: 8 * 512, Hashes: 6}, {Bits: 512, Hashes: 14}, {Protocol: ESBloomV1, Bits: 3000, Hashes: 4}} {
		saturated := cfg.Bits == 512
		n := hostileN
		if saturated {
			n = 1000
		}
		var all [2][][]byte
		var files [2][]byte
		for i := range all {
			for j := range n {
				all[i] = append(all[i], fmt.Appendf(nil, "%d/%07d", i, j))
			}
			files[i] = asFile(t, mustNew(t, cfg, all[i]...))
		}
		h, err := parseHeader(files[0])
		if err != nil || len(files[0]) != len(files[1]) {
			t.Fatalf("%d and %d bytes, %v", len(files[0]), len(files[1]), err)
		}
		l, _ := h.layout()
		for i := range files {
			swapped := slices.Concat(files[i][:l.index], files[1-i][l.index:])
			checks := slices.Clone(swapped) // the checks are made to fit
			copy(checks[l.checks:], appendChecks(appendChecks(nil, checks[headerSize:headerSize+l.filter]), checks[l.index:l.index+l.indexLen]))
			digests := slices.Clone(checks) // the header's digests, too
			copy(digests[112:176], files[1-i][112:176])
			resealHeader(digests, nil)
			heads := reseal(swapped, nil) // and the heads: everything
			for name, file := range map[string][]byte{"nothing": swapped, "checks": checks, "digests": digests, "heads": heads} {
				if bytes.Equal(file, files[1-i]) && saturated {
					continue // it is the other snapshot
				}
				opened, errs := court.open(kindSnapshot, file, OpenOptions{})
				for way, err := range errs {
					name := fmt.Sprintf("%v, %s fit, %s", cfg, name, way)
					if err != nil {
						if !isOnly(err, ErrCorrupt) {
							t.Errorf("%s: %v", name, err)
						}
						continue
					}
					s := opened[way].(*Snapshot)
					if err := s.Verify(); !isOnly(err, ErrCorrupt) || way == "Read" {
						t.Errorf("%s: Verify: %v", name, err)
					}
					if saturated || bytes.Equal(file, heads) {
						continue
					}
					for _, r := range all[i] {
						if got, err := s.Lookup(r); !isOnly(err, ErrCorrupt) {
							t.Errorf("%s: member %s: %+v, %v", name, r, got, err)
						}
					}
					for _, r := range all[1-i] {
						if got, err := s.Lookup(r); got.Duplicate || err == nil && got.MaybePresent {
							t.Errorf("%s: member %s of the other: %+v, %v", name, r, got, err)
						}
					}
				}
			}
		}
	}
}

// Records that the protocol does not admit are refused in a file, too.
func TestHostileItems(t *testing.T) {
	court := newCourt(t)
	for _, c := range []struct {
		p   Protocol
		bad []byte
	}{{DocMembershipV1, repeat(65)}, {ESBloomV1, []byte("\xff")}, {KeyIndexV1, repeat(7)}, {KeyIndexV1, repeat(9)}, {KeyIndexV1, nil}} {
		good := []byte("8 bytes.")
		f := takeApart(t, asFile(t, mustNew(t, Config{Protocol: c.p, Bits: 64, Hashes: 1}, good)), nil)
		f.buckets[0].drop(0)
		f.buckets[0].insert(0, tag(plainScheme.digest(c.bad)), c.bad)
		clear(f.filter)
		scheme := newScheme(Config{Protocol: c.p, Bits: 64, Hashes: 1})
		for _, p := range scheme.positions(c.bad, 64, 1) {
			setBit(f.filter, p)
		}
		opened, errs := court.open(kindSnapshot, f.file(), OpenOptions{})
		for way, err := range errs {
			if way != "Read" && err == nil {
				err = opened[way].Verify()
			}
			if !isOnly(err, ErrCorrupt) {
				t.Errorf("%v with a record of %d bytes, %s: %v", c.p, len(c.bad), way, err)
			}
		}
	}
}

// Where the digests of two records are equal, which only a forger's own
// digests are, a bucket's order is that of the bytes.
func TestBucketOrder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		ok   bool
	}{{"a", "b", true}, {"a", "ab", true}, {"", "a", true}, {"b", "a", false}, {"ab", "a", false}, {"a", "a", false}} {
		if (compareEntries(&entry{record: []byte(c.a)}, &entry{record: []byte(c.b)}) < 0) != c.ok {
			t.Errorf("%q before %q: %t", c.a, c.b, !c.ok)
		}
	}
}

// Damage to any byte of an open file, whatever of it is held in memory, is
// found by Verify, which says what is wrong; and when the byte is as it was,
// Verify is content again.
func TestVerifyFindsDamageAfterOpening(t *testing.T) {
	records := varied(60)
	file := asFile(t, mustNew(t, Config{Bits: 1024, Hashes: 5}, records...))
	h, err := parseHeader(file)
	if err != nil {
		t.Fatal(err)
	}
	l, _ := h.layout()
	path := tempFile(t, file)
	disk, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	memory := &damaged{file: slices.Clone(file)}
	for name, open := range map[string]func() (*Snapshot, error){
		"Open":         func() (*Snapshot, error) { return Open(path, OpenOptions{}) },
		"Open mapped":  func() (*Snapshot, error) { return Open(path, OpenOptions{Mapped: true}) },
		"OpenReaderAt": func() (*Snapshot, error) { return OpenReaderAt(memory, int64(len(file)), OpenOptions{}) },
	} {
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		write := func(at uint64, x byte) {
			memory.file[at] = x
			if _, err := disk.WriteAt([]byte{x}, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		for at := uint64(0); at < uint64(len(file)); at++ {
			if testing.Short() && at%7 != 0 {
				continue
			}
			write(at, file[at]^1<<(at%8))
			err := s.Verify()
			if !isOnly(err, ErrCorrupt) {
				t.Errorf("%s: byte %d: %v", name, at, err)
			}
			where := ""
			switch {
			case at < headerSize:
				where = "header"
			case at < headerSize+l.filter:
				where = "filter"
			case at >= l.index && at < l.index+l.indexLen:
				where = "index"
			case at >= l.checks && at < l.checks+l.checksLen:
				where = "checksums"
			case at >= l.buckets:
				where = "buckets"
			default:
				where = "padding"
			}
			if err != nil && !strings.Contains(err.Error(), where) {
				t.Errorf("%s: byte %d of the %s: %v", name, at, where, err)
			}
			if _, err := s.WriteTo(&bytes.Buffer{}); !isOnly(err, ErrCorrupt) && (where == "filter" || where == "index" || where == "buckets") {
				t.Errorf("%s: byte %d of the %s: WriteTo: %v", name, at, where, err)
			}
			write(at, file[at])
		}
		if err := s.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// damaged is a ReaderAt over bytes that a test changes.
type damaged struct{ file []byte }

func (d *damaged) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(d.file).ReadAt(p, off)
}

// With Mapped a filter that was damaged before opening, or is while open, is
// found by Verify, of the snapshot, of its filter and of the filter alone.
func TestVerifyMappedFilter(t *testing.T) {
	s := mustNew(t, Config{}, varied(200)...)
	if probe, err := Open(tempFile(t, asFile(t, s)), OpenOptions{Mapped: true}); err != nil {
		t.Fatal(err)
	} else if probe.filter.mapping == nil {
		t.Skip("files cannot be mapped here")
	}
	for _, early := range []bool{true, false} {
		path, alone := tempFile(t, asFile(t, s)), tempFile(t, asFile(t, filterOf(t, s)))
		for _, name := range []string{path, alone} {
			damage := func() {
				t.Helper()
				file, err := os.OpenFile(name, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				b := make([]byte, 1)
				_, err1 := file.ReadAt(b, headerSize+20)
				b[0] ^= 0x10
				_, err2 := file.WriteAt(b, headerSize+20)
				if err := errors.Join(err1, err2); err != nil {
					t.Fatal(err)
				}
			}
			if early {
				damage()
			}
			var verify []verifier
			var f *Filter
			if name == path {
				got, err := Open(name, OpenOptions{Mapped: true})
				if err != nil {
					t.Fatal(err)
				}
				f = filterOf(t, got)
				verify = append(verify, got, f)
			} else {
				var err error
				if f, err = OpenFilter(name, OpenOptions{Mapped: true}); err != nil {
					t.Fatal(err)
				}
				verify = append(verify, f)
			}
			if !early {
				for _, v := range verify {
					if err := v.Verify(); err != nil {
						t.Errorf("%T: %v", v, err)
					}
				}
				damage()
			}
			for _, v := range verify {
				if err := v.Verify(); !isOnly(err, ErrCorrupt) || !strings.Contains(err.Error(), "filter") {
					t.Errorf("%T, damaged before opening %t: %v", v, early, err)
				}
			}
			if _, err := f.WriteTo(&bytes.Buffer{}); !isOnly(err, ErrCorrupt) {
				t.Errorf("a damaged filter is written: %v", err)
			}
		}
	}
}

// Verify says which bit of the filter is wrong, and how.
func TestVerifyNamesTheBit(t *testing.T) {
	for _, cfg := range []Config{{Bits: 1024, Hashes: 5}, {Protocol: KeyIndexV1, Bits: 333, Hashes: 3}} {
		file := asFile(t, mustNew(t, cfg, eightBytes(20)...))
		for _, p := range []uint64{0, 1, 31, 32, 63, 100, 319, 320, 332} {
			f := takeApart(t, file, nil)
			f.filter[p/8] ^= 1 << (p % 8)
			has := hasBit(f.filter, p)
			forged := f.file()
			s, err := OpenReaderAt(bytes.NewReader(forged), int64(len(forged)), OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(); !isOnly(err, ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("bit %d is %t, and by the records it is %t", p, has, !has)) {
				t.Errorf("%v: bit %d: %v", cfg, p, err)
			}
		}
	}
}

// Sections that end where a chunk does, or a byte before or after, and
// buckets that fill their runs.
func TestWholeChunks(t *testing.T) {
	court := newCourt(t)
	for _, c := range []struct {
		cfg Config
		n   int
	}{
		{Config{Bits: 8 * sectionChunk, Hashes: 1}, 8 * 256},
		{Config{Bits: 16 * sectionChunk, Hashes: 1}, 8 * 512},
		{Config{Protocol: KeyIndexV1, Bits: 8*sectionChunk - 8, Hashes: 1}, 8 * 255},
		{Config{Protocol: KeyIndexV1, Bits: 8*sectionChunk + 8, Hashes: 1}, 8 * 257},
	} {
		s := mustNew(t, c.cfg, eightBytes(c.n)...)
		if err := s.Verify(); err != nil {
			t.Errorf("%v of %d: %v", c.cfg, c.n, err)
		}
		for kind, file := range map[uint8][]byte{kindSnapshot: asFile(t, s), kindFilter: asFile(t, filterOf(t, s))} {
			h, _ := parseHeader(file)
			l, _ := h.layout()
			if chunks := (c.cfg.Bits/8-1)/sectionChunk + 1; l.filterChunks != chunks || l.checksLen != 4*(chunks+l.indexChunks) {
				t.Errorf("%v of %d: %+v", c.cfg, c.n, l)
			}
			if got := sectionDigest(file[headerSize : headerSize+l.filter]); got != h.filter {
				t.Errorf("%v of %d: digest %x, want %x", c.cfg, c.n, got, h.filter)
			}
			opened, errs := court.open(kind, file, OpenOptions{})
			for way, err := range errs {
				if err == nil {
					err = opened[way].Verify()
				}
				if err != nil {
					t.Errorf("%v of %d, %s: %v", c.cfg, c.n, way, err)
				}
			}
		}
	}
}

// A context that is done ends Verify with its error.
func TestVerifyContext(t *testing.T) {
	file := asFile(t, mustNew(t, Config{}, eightBytes(3000)...))
	opened, errs := newCourt(t).open(kindSnapshot, file, OpenOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("because"))
	for way, s := range opened {
		if err := s.(*Snapshot).VerifyContext(ctx); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "bloom: ") || errs[way] != nil {
			t.Errorf("%s: %v", way, err)
		}
		if err := s.(*Snapshot).VerifyContext(t.Context()); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// Verify makes no more room than OpenOptions allow, whatever a file of holes
// says it has.
func TestVerifyMemory(t *testing.T) {
	if !mappable {
		t.Skip("files are not mapped here")
	}
	path := saved(t, mustNew(t, Config{Bits: 1 << 18}, eightBytes(5000)...))
	const need = 1<<15 + 5000/8/8 // for the filter, and an eighth of a byte a bucket
	for most, want := range map[uint64]error{need - 1: ErrTooLarge, need: nil, 0: nil} {
		s, err := Open(path, OpenOptions{Mapped: true, MaxMemory: most})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(); !isOnly(err, want) {
			t.Errorf("in %d bytes: %v", most, err)
		}
	}
	s, err := Open(path, OpenOptions{Mapped: true, MaxMemory: 10})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range s.Records() {
		if r != nil || !isOnly(err, ErrTooLarge) {
			t.Errorf("copies of records: %q, %v", r, err)
		}
	}
	if math.MaxInt == math.MaxInt32 {
		return // what follows is not mapped there
	}
	h := header{kind: kindSnapshot, protocol: SHA256, k: 1, m: 1 << 38}
	set := newFrozenSet(0)
	h.setBytes = set.headSize(0, 0)
	l, _ := h.layout()
	path = tempFile(t, h.append(nil))
	if err := os.Truncate(path, int64(l.total)); err != nil {
		t.Skip(err) // 32 GiB, and no holes
	}
	if s, err = Open(path, OpenOptions{Mapped: true}); err != nil {
		t.Skip(err)
	}
	if got := allocated(func() { err = s.Verify() }); !isOnly(err, ErrTooLarge) || got > 1<<20 || s.PackedBits() != nil {
		t.Errorf("a file of %d bytes: %d allocated, %v", l.total, got, err)
	}
}

// digestAt is sectionDigest and appendChecks, chunk after chunk and window
// after window.
func TestDigestAt(t *testing.T) {
	data := make([]byte, 33*sectionChunk+5)
	for i := range data {
		data[i] = byte(i>>12) ^ byte(i>>20*31)
	}
	for _, size := range []int{0, 1, sectionChunk - 1, sectionChunk, sectionChunk + 1, 32 * sectionChunk, 32*sectionChunk + 1, len(data)} {
		const at = 3
		sum, checks, err := digestAt(t.Context(), bytes.NewReader(append(make([]byte, at), data[:size]...)), at, uint64(size))
		if err != nil || sum != sectionDigest(data[:size]) || !bytes.Equal(checks, appendChecks(nil, data[:size])) {
			t.Errorf("%d bytes: %x, %x, %v", size, sum, checks, err)
		}
	}
}
