package bloom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Order, repetition and the number of cores leave no trace, for sets below
// and above the size that is built by many workers.
func TestEqualRecordsGiveEqualBytes(t *testing.T) {
	for _, n := range []int{0, 1, 9, 1000, 60_000} {
		var records [][]byte
		for r := range numbered("x", n) {
			records = append(records, r)
		}
		want := asFile(t, mustNew(t, Config{}, records...))
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		for procs := 1; procs <= 4; procs++ {
			before := runtime.GOMAXPROCS(procs)
			shuffled := append(slices.Clone(records), records[:n/3]...)
			rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			got := asFile(t, mustNew(t, Config{}, shuffled...))
			runtime.GOMAXPROCS(before)
			if !bytes.Equal(got, want) {
				t.Errorf("%d records, %d cores: other bytes", n, procs)
			}
		}
	}
}

// One reused and then scribbled buffer: nothing of the caller's is kept.
func TestRecordsAreCopied(t *testing.T) {
	for _, n := range []int{100, 50_000} {
		buf := make([]byte, 24)
		seed, key := []byte("seed"), repeat(16)
		s, err := New(Config{Protocol: BLAKE2b, Seed: seed, Key: key}, func(yield func([]byte) bool) {
			clear(seed) // not even while New runs
			clear(key)
			for i := range n {
				if !yield(fmt.Appendf(buf[:0], "%024d", i)) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		clear(buf)
		again, err := New(Config{Protocol: BLAKE2b, Seed: []byte("seed"), Key: repeat(16)}, s.recordsOnly)
		if err != nil || !bytes.Equal(asFile(t, again), asFile(t, s)) {
			t.Errorf("seed or key was not copied, %v", err)
		}
		for i := range n {
			if r, err := s.Lookup(fmt.Appendf(nil, "%024d", i)); err != nil || !r.Duplicate {
				t.Fatalf("record %d of %d: %+v, %v", i, n, r, err)
			}
		}
	}
}

func (s *Snapshot) recordsOnly(yield func([]byte) bool) {
	for r, err := range s.Records() {
		if err != nil || !yield(r) {
			return
		}
	}
}

// mixed is records of very different lengths, and others that differ from
// them in one byte or in length only.
func mixed() (records, others [][]byte) {
	for i, n := range []int{0, 1, 2, 7, 8, 9, 24, 61, 62, 63, 64, 200, 254, 255, 256, 257, 1000, 65535, 65536, 65537, 1 << 20} {
		r := bytes.Repeat([]byte{byte(i + 1)}, n)
		records = append(records, r)
		others = append(others, append(slices.Clone(r), 0))
		if n > 0 {
			changed := slices.Clone(r)
			changed[n-1] ^= 1
			others = append(others, changed)
		}
	}
	return records, others
}

func TestMixedLengths(t *testing.T) {
	records, others := mixed()
	for _, cfg := range []Config{{}, {Bits: 512, Hashes: 1}, {Protocol: BLAKE2b, Key: repeat(64)}} {
		s := mustNew(t, cfg, records...)
		seen := map[uint64]bool{}
		for _, r := range records {
			got, o, err := s.LookupOrdinal(r)
			if lookup(t, s, r) != got || !got.Duplicate || err != nil || seen[o] || o >= uint64(len(records)) {
				t.Errorf("%v: record of %d bytes: ordinal %d, %+v, %v", cfg, len(r), o, got, err)
			}
			seen[o] = true
		}
		for _, r := range others {
			if got, o, err := s.LookupOrdinal(r); lookup(t, s, r) != got || got.Duplicate || err != nil {
				t.Errorf("%v: absent item of %d bytes: ordinal %d, %+v, %v", cfg, len(r), o, got, err)
			}
		}
	}
}

// Records come out in the order of their ordinals, all of them, once.
func TestRecordsInOrder(t *testing.T) {
	for p := range Protocol(len(protocols)) {
		for _, n := range []int{0, 1, 50} {
			var in []string
			for i := range n {
				in = append(in, fmt.Sprintf("%08d", i))
			}
			s := mustNew(t, Config{Protocol: p}, in...)
			var out []string
			for r, err := range s.Records() {
				if err != nil {
					t.Fatal(err)
				}
				if got, o, err := s.LookupOrdinal(r); !got.Duplicate || err != nil || o != uint64(len(out)) {
					t.Errorf("%v: %s has ordinal %d, %+v, %v, not %d", p, r, o, got, err, len(out))
				}
				out = append(out, string(r))
			}
			slices.Sort(out)
			if !slices.Equal(in, out) {
				t.Errorf("%v: records %q, want %q", p, out, in)
			}
			for range s.Records() {
				break // stopping early is allowed
			}
		}
	}
}

// checkBatch compares a batch of members and others with single lookups, into
// results that say the contrary of what is right.
func checkBatch(t *testing.T, name string, s *Snapshot, n int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(8, uint64(n)))
	items := make([][]byte, n)
	want, got := make([]Result, n+2), make([]Result, n+2)
	maybes := make([]bool, n+2)
	for i := range items {
		switch rng.IntN(3) {
		case 0:
			items[i] = fmt.Appendf(nil, "%-12s%012d", "member", rng.IntN(20_000))
		case 1:
			items[i] = fmt.Appendf(nil, "%-12s%012d", "absent", rng.IntN(20_000))
		case 2:
			items[i] = bytes.Repeat([]byte{byte(rng.IntN(128))}, rng.IntN(300))
		}
		var err error
		if want[i], err = s.Lookup(items[i]); err != nil {
			t.Fatal(err)
		}
		r := want[i]
		got[i], maybes[i] = Result{!r.MaybePresent, !r.ExactChecked, !r.Duplicate}, !r.MaybePresent
	}
	untouched := Result{ExactChecked: true}
	got[n], want[n], got[n+1], want[n+1], maybes[n] = untouched, untouched, untouched, untouched, true
	if n > 0 {
		before := slices.Clone(got)
		if err := s.LookupBatch(items, got[:n-1]); !errors.Is(err, ErrConfig) || !slices.Equal(got, before) {
			t.Errorf("%s: short results: %v", name, err)
		}
	}
	if err := s.LookupBatch(items, got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s differs from single lookups, %v", name, err)
	}
	err := s.MaybePresentBatch(items, maybes)
	for i, r := range want[:n] {
		if maybes[i] != r.MaybePresent {
			t.Errorf("%s: item %d: maybe %t, single %+v", name, i, maybes[i], r)
		}
	}
	if err != nil || !maybes[n] || maybes[n+1] {
		t.Errorf("%s: maybes beyond the items, %v", name, err)
	}
}

// Batches of any size, around that of a group and others, answer as single
// lookups do, whatever way a snapshot was opened.
func TestBatches(t *testing.T) {
	for name, cfg := range map[string]Config{"a block": {Bits: 512 * 1000, Hashes: 2}, "each position": {Protocol: ESBloomV1, Bits: 100_000, Hashes: 2}} {
		s, err := New(cfg, numbered("member", 20_000))
		if err != nil {
			t.Fatal(err)
		}
		file, path := asFile(t, s), saved(t, s)
		ways := maps.Clone(snapshotWays)
		ways["New"] = func(string, []byte, OpenOptions) (*Snapshot, error) { return s, nil }
		for way, open := range ways {
			sizes := []int{0, 1, 63, 64, 65, 255, 256, 257, 600}
			if way == "New" && name == "a block" {
				sizes = append(sizes, 4095, 4096, 4097, 65535, 65536, 65537)
			}
			got, err := open(path, file, OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range sizes {
				checkBatch(t, fmt.Sprintf("%s, %s, batch of %d", name, way, n), got, n)
			}
		}
	}
	// A bad item among good ones: its index is named, no result is written.
	short := mustNew(t, Config{Protocol: DocMembershipV1}, "a", "b")
	results := make([]Result, 4)
	err := short.LookupBatch([][]byte{[]byte("a"), []byte("b"), repeat(65), []byte("c")}, results)
	if !errors.Is(err, ErrItem) || !strings.Contains(err.Error(), "item 2 ") || !slices.Equal(results, make([]Result, 4)) {
		t.Errorf("%v, %+v", err, results)
	}
}

// A record one byte too long among good ones is named by its place, as are
// records beyond the most that a protocol takes, repeats included.
func TestRefusedRecords(t *testing.T) {
	for _, c := range []struct {
		p    Protocol
		bad  []byte
		good []byte
	}{
		{DocMembershipV1, repeat(65), repeat(64)}, {ESBloomV1, repeat(1_000_001), repeat(1_000_000)},
		{ESBloomV1, []byte("\xff"), []byte("é")}, {KeyIndexV1, repeat(9), repeat(8)}, {KeyIndexV1, repeat(7), repeat(8)},
	} {
		cfg := Config{Protocol: c.p}
		s, err := New(cfg, slices.Values([][]byte{c.good, c.good, c.bad, c.good}))
		if !errors.Is(err, ErrItem) || s != nil || !strings.Contains(err.Error(), "record 2") {
			t.Errorf("%v: %v, %v", c.p, s, err)
		}
		s = mustNew(t, cfg, c.good)
		if r, err := s.Lookup(c.bad); !errors.Is(err, ErrItem) || r != (Result{}) {
			t.Errorf("%v: %+v, %v", c.p, r, err)
		}
		if _, _, err := s.LookupOrdinal(c.bad); !errors.Is(err, ErrItem) {
			t.Errorf("%v: %v", c.p, err)
		}
		if _, err := s.Explain(c.bad); !errors.Is(err, ErrItem) {
			t.Errorf("%v: %v", c.p, err)
		}
	}
	same := slices.Repeat([]string{"same"}, 65)
	mustNew(t, Config{Protocol: DocMembershipV1}, same[:64]...)
	if _, err := New(Config{Protocol: DocMembershipV1}, slices.Values(same)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("65 records: %v", err)
	}
}

// What would exhaust memory is refused before memory is asked for.
func TestTooLarge(t *testing.T) {
	none := slices.Values([]string(nil))
	for _, cfg := range []Config{{Bits: 1 << 48}, {Bits: 1 << 40}, {Protocol: BLAKE2b, Bits: 1 << 48}, {Protocol: KeyIndexV1, Bits: 1<<64 - 1}} {
		if _, err := New(cfg, none); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: %v", cfg, err)
		}
	}
	b, err := NewBuilder(Config{}, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.limit = 1000
	for i := range 10 {
		if err := add(b, repeat(64)); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	if err := add(b, ""); !errors.Is(err, ErrTooLarge) {
		t.Errorf("record past the limit: %v", err)
	}
	if _, err := New[string](Config{}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("nil sequence: %v", err)
	}
	if _, err := New(Config{FPRate: 1e-40}, slices.Values([]string{"a"})); !errors.Is(err, ErrConfig) {
		t.Errorf("rate out of reach: %v", err)
	}
}

func TestEmptySnapshot(t *testing.T) {
	for p := range Protocol(len(protocols)) {
		s := mustNew[string](t, Config{Protocol: p})
		_, item := usual(p)
		if r := lookup(t, s, item); r != (Result{}) {
			t.Errorf("%v: %+v", p, r)
		}
		stats, err := s.Stats()
		if err != nil || stats.Records != 0 || stats.Ones != 0 || stats.RealisedFPRate != 0 || stats.ExpectedFPRate != 0 ||
			stats.Bits != protocols[p].leastBits || stats.Hashes != 1 {
			t.Errorf("%v: %+v, %v", p, stats, err)
		}
	}
}

func TestNilAndZero(t *testing.T) {
	for _, s := range []*Snapshot{nil, {}} {
		check := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := s.MaybePresent(nil)
		check("MaybePresent", err)
		_, err = s.Lookup(nil)
		check("Lookup", err)
		_, err = s.LookupString("")
		check("LookupString", err)
		check("LookupBatch", s.LookupBatch(nil, nil))
		_, err = s.LookupDigest(Digest{}, nil)
		check("LookupDigest", err)
		_, err = s.Digest(nil)
		check("Digest", err)
		_, _, err = s.LookupOrdinal(nil)
		check("LookupOrdinal", err)
		_, err = s.Stats()
		check("Stats", err)
		_, err = s.Explain(nil)
		check("Explain", err)
		_, err = s.Filter()
		check("Filter", err)
		for r, err := range s.Records() {
			check("Records", err)
			if r != nil {
				t.Errorf("record %q", r)
			}
		}
		if n := s.Len(); n != 0 {
			t.Errorf("%d records", n)
		}
		if b := s.PackedBits(); b != nil {
			t.Errorf("bits %x", b)
		}
		if text := s.String(); text != "bloom.Snapshot(not open)" {
			t.Error(text)
		}
	}
	for _, f := range []*Filter{nil, {}} {
		_, err1 := f.MaybePresent(nil)
		_, err2 := f.MaybePresentDigest(Digest{})
		_, err3 := f.Digest(nil)
		_, err4 := f.Stats()
		_, err5 := f.Confirm(t.Context(), nil, func(context.Context, []byte) (bool, error) { return true, nil })
		for i, err := range []error{err1, err2, err3, err4, err5} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if f.PackedBits() != nil || f.String() != "bloom.Filter(not open)" {
			t.Error(f)
		}
	}
}

// A million lookups of every kind allocate nothing.
func TestLookupAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for p := range Protocol(len(protocols)) {
		var items [][]byte
		for i := range 60 {
			items = append(items, fmt.Appendf(nil, "%08d", i))
		}
		built := mustNew(t, Config{Protocol: p}, items[:30]...)
		if p == ESBloomV1 || p == SHA256 || p == BLAKE2b {
			items = append(items, repeat(200), repeat(300), repeat(5000)) // beyond the frame on the stack
		}
		file, path := asFile(t, built), saved(t, built)
		ways := maps.Clone(snapshotWays)
		ways["New"] = func(string, []byte, OpenOptions) (*Snapshot, error) { return built, nil }
		delete(ways, "OpenReaderAt") // which reads into memory of its own
		if !mappable {
			delete(ways, "Open")
			delete(ways, "Open mapped")
		}
		for way, open := range ways {
			s, err := open(path, file, OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			text := "12345678"
			results := make([]Result, len(items))
			maybes := make([]bool, len(items))
			d, _ := s.Digest(items[0])
			each := 1_000_000 / (6 * len(items) * len(protocols) * len(ways))
			if testing.Short() {
				each /= 10
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range each {
				for _, item := range items {
					s.Lookup(item)
					s.MaybePresent(item)
					s.LookupString(text)
					s.LookupOrdinal(item)
					if s.filter.scheme.block {
						s.LookupDigest(d, items[0])
						s.filter.MaybePresentDigest(d)
					}
				}
				s.LookupBatch(items, results)
				s.MaybePresentBatch(items, maybes)
			}
			runtime.ReadMemStats(&after)
			// The test's own goroutines may allocate a little; a lookup that
			// allocated would do so thousands of times.
			if n := after.Mallocs - before.Mallocs; n > 20 {
				t.Errorf("%v, %s: %d allocations", p, way, n)
			}
		}
	}
}

// Any number of goroutines read one snapshot: for the race detector.
func TestConcurrentReaders(t *testing.T) {
	for p := range Protocol(len(protocols)) {
		var items [][]byte
		for i := range 60 {
			items = append(items, fmt.Appendf(nil, "%08d", i))
		}
		s := mustNew(t, Config{Protocol: p}, items[:40]...)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				results := make([]Result, len(items))
				for range 5 {
					s.LookupBatch(items, results)
					for i, item := range items {
						if r, err := s.Lookup(item); err != nil || r.Duplicate != (i < 40) || r != results[i] {
							t.Errorf("%v: %s: %+v, %v", p, item, r, err)
						}
					}
					s.Stats()
					s.Explain(items[0])
					s.PackedBits()
					for range s.Records() {
					}
				}
			})
		}
		wg.Wait()
	}
}

// No printed form of any value shows the key.
func TestKeyIsNeverPrinted(t *testing.T) {
	key := []byte("TopSecretKey-0123456789abcdefghi")
	cfg := Config{Protocol: BLAKE2b, Seed: []byte("public"), Key: key}
	s := mustNew(t, cfg, "a", "b")
	f, _ := s.Filter()
	stats, _ := s.Stats()
	explanation, _ := s.Explain([]byte("a"))
	digest, _ := s.Digest([]byte("a"))
	badKey := cfg
	badKey.Key = append(slices.Clone(key), repeat(40)...)
	_, err := New(badKey, slices.Values([]string{"a"}))
	if err == nil {
		t.Fatal("a key of 72 bytes is admitted")
	}
	type holder struct{ Value any }
	type unexported struct { // fmt calls no method on these
		snapshot *Snapshot
		filter   Filter
		builder  *Builder
	}
	options := OpenOptions{Key: key}
	b, _ := NewBuilder(cfg, BuildOptions{})
	forms := []string{fmt.Sprintf("%x", key), fmt.Sprintf("%X", key), string(key), fmt.Sprint(key), strings.Trim(fmt.Sprint(key), "[]"),
		strings.Trim(fmt.Sprintf("%#v", key), "[]byte{}"), "VG9wU2VjcmV0S2V5"}
	for _, value := range []any{cfg, &cfg, badKey, s, *s, f, *f, b, struct{ B *Builder }{b}, options, &options, stats, explanation, digest, err,
		unexported{s, *f, b}, &unexported{s, *f, b}} {
		var out strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", value)
			fmt.Fprintf(&out, verb+"\n", holder{value})
			fmt.Fprintf(&out, verb+"\n", []any{value})
		}
		text, _ := json.Marshal(value)
		out.Write(text)
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("m", "value", value, "holder", holder{value})
		}
		for _, form := range forms {
			if strings.Contains(out.String(), form) {
				t.Errorf("%T shows the key as %q:\n%s", value, form, out.String())
			}
		}
	}
}

func TestStats(t *testing.T) {
	s := mustNew(t, Config{Protocol: DocMembershipV1, Bits: 16, Hashes: 3, Seed: []byte("lab")}, "doc-00", "doc-01", "doc-02", "doc-03")
	stats, err := s.Stats()
	if want := "doc-membership-v1 n=4 m=16 k=3 seed=6c6162 keyed=false ones=7 fill=0.4375 fp(realised)=0.08374 fp(expected)=0.1566 filter=2B set=58B"; err != nil || stats.String() != want {
		t.Errorf("%v, %v\nwant %s", stats, err, want)
	}
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	log.Info("built", "snapshot", stats)
	if !strings.Contains(out.String(), "snapshot.protocol=doc-membership-v1 snapshot.keyed=false snapshot.seed=6c6162 snapshot.records=4 snapshot.bits=16") {
		t.Error(out.String())
	}
}
