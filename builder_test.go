package bloom

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// litter fails the test if anything but these names is in the folder.
func litter(t testing.TB, folder string, expected ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(expected, e.Name()) {
			t.Errorf("%s is left in the folder", e.Name())
		}
	}
}

// spilling is the options of a Builder that spills early and often.
func spilling(folder string) BuildOptions { return BuildOptions{Memory: 1, Folder: folder} }

// Runs are merged into fewer where they are too many, or their records too
// long, to be read side by side; and the file is the same.
func TestFold(t *testing.T) {
	for name, c := range map[string]struct{ n, size int }{"long": {40, 400_000}, "short": {5000, 900}} {
		record := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%04d", i), c.size/4) }
		records := func(yield func([]byte) bool) {
			for i := range 2 * c.n {
				if !yield(record(i % (c.n + c.n/2))) {
					return
				}
			}
		}
		s, err := New(Config{}, records)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		b, err := NewBuilder(Config{}, spilling(folder))
		if err != nil {
			t.Fatal(err)
		}
		for r := range records {
			if err := b.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.spillPiles(); err != nil {
			t.Fatal(err)
		}
		runs := len(b.spill.runs)
		b.o.Memory = 64 << 10 // as if there were many more
		if err := b.fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		need := uint64(0)
		for _, r := range b.spill.runs {
			need += r.need()
		}
		if folded := len(b.spill.runs); folded >= runs || folded > 2 && need > b.o.Memory/8 {
			t.Errorf("%s: %d runs folded to %d, which need %d bytes", name, runs, folded, need)
		}
		path := filepath.Join(folder, "s.bloom")
		if err := b.Save(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, asFile(t, s)) {
			t.Errorf("%s: another file, %v", name, err)
		}
		litter(t, folder, "s.bloom")
	}
}

// In memory, from many goroutines, and larger than memory with repeats across
// spills: the same file, bit for bit.
func TestBuilderRoads(t *testing.T) {
	for i, c := range []struct {
		cfg    Config
		record func(i int) []byte
	}{
		{Config{}, func(i int) []byte { return fmt.Appendf(nil, "%060d", i) }},
		{Config{Seed: []byte("s")}, func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, i%1000*(i%7)) }},
		{Config{Protocol: BLAKE2b, Key: repeat(32), FPRate: 0.001}, func(i int) []byte { return fmt.Appendf(nil, "%080d", i) }},
		{Config{Protocol: ESBloomV1, Bits: 99_999, Hashes: 2}, func(i int) []byte { return fmt.Appendf(nil, "é%060d", i) }},
		{Config{Protocol: KeyIndexV1, FPRate: 0.1}, func(i int) []byte { return littleEndian(uint64(i) << 40) }},
		{Config{}, func(i int) []byte { // some larger than a chunk of a pile
			if i%500 == 0 {
				return bytes.Repeat(fmt.Append(nil, i), 20_000)
			}
			return fmt.Appendf(nil, "%060d", i)
		}},
	} {
		if raceEnabled && i%2 == 1 {
			continue // half of them meet every goroutine there is
		}
		n := 60_000
		if testing.Short() {
			n = 30_000
		}
		order := rand.New(rand.NewPCG(1, 2)).Perm(n)
		order = append(order, order[:n*2/3]...) // repeats, far apart
		records := func(yield func([]byte) bool) {
			for _, i := range order {
				if !yield(c.record(i)) {
					return
				}
			}
		}
		s, err := New(c.cfg, records)
		if err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256(asFile(t, s))

		b, err := NewBuilder(c.cfg, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for at := g; at < len(order); at += 4 {
					if err := b.AddString(string(c.record(order[at]))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		s, err = b.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if sha256.Sum256(asFile(t, s)) != want {
			t.Errorf("%v: from four goroutines, another file", c.cfg)
		}

		folder := t.TempDir()
		path := filepath.Join(folder, "s.bloom")
		stages := map[string]uint64{}
		o := spilling(folder)
		o.Progress = func(stage string, done, total uint64) {
			if done < stages[stage] || total != 0 && done > total {
				t.Errorf("%s: %d of %d after %d", stage, done, total, stages[stage])
			}
			stages[stage] = done
		}
		if b, err = NewBuilder(c.cfg, o); err != nil {
			t.Fatal(err)
		}
		for r := range records {
			if err := b.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if b.spill == nil || len(b.spill.runs) < 2 {
			t.Fatalf("%v: nothing was spilled twice", c.cfg)
		}
		if err := b.Save(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sha256.Sum256(got) != want {
			t.Errorf("%v: larger than memory, another file", c.cfg)
		}
		for _, stage := range []string{"adding", "counting", "filter", "writing"} {
			if stages[stage] == 0 {
				t.Errorf("%v: no progress of %s", c.cfg, stage)
			}
		}
		litter(t, folder, "s.bloom")
		if err := errors.Join(b.Close(), b.Close()); err != nil {
			t.Error(err)
		}
		if _, err := Open(path, OpenOptions{Key: c.cfg.Key}); err != nil {
			t.Error(err)
		}
	}
}

// Whatever ends a Builder that has spilled, no temporary file stays.
func TestBuilderLeavesNothing(t *testing.T) {
	fill := func(b *Builder) {
		t.Helper()
		for i := range 20_000 {
			if err := b.Add(fmt.Appendf(nil, "%0200d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if b.spill == nil {
			t.Fatal("nothing was spilled")
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, end := range map[string]func(b *Builder, path string) error{
		"Close":    func(b *Builder, _ string) error { return b.Close() },
		"canceled": func(b *Builder, path string) error { return b.Save(canceled, path) },
		"no such folder": func(b *Builder, path string) error {
			return b.Save(t.Context(), filepath.Join(path, "missing", "s.bloom"))
		},
		"no such name": func(b *Builder, path string) error {
			return b.Save(t.Context(), path+strings.Repeat("x", 300))
		},
		"in memory": func(b *Builder, _ string) error { _, err := b.Snapshot(t.Context()); return err },
		"panic": func(b *Builder, path string) (err error) { // of the caller's, in a callback
			defer func() { err = recover().(error) }()
			b.o.Progress = func(string, uint64, uint64) { panic(os.ErrProcessDone) }
			return b.Save(t.Context(), path)
		},
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, "s.bloom")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := NewBuilder(Config{}, spilling(folder))
		if err != nil {
			t.Fatal(err)
		}
		fill(b)
		err = end(b, path)
		switch name {
		case "Close":
			if err != nil {
				t.Error(err)
			}
		case "canceled":
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case "panic":
			if !errors.Is(err, os.ErrProcessDone) {
				t.Error(err)
			}
		default:
			if err == nil || !strings.HasPrefix(err.Error(), "bloom: ") || (name == "in memory") != errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
			// What is refused leaves the Builder as it was.
			if err := errors.Join(b.Add(nil), b.Close()); err != nil {
				t.Error(err)
			}
		}
		for what, err := range map[string]error{"Add": b.Add(nil), "Save": b.Save(t.Context(), path)} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s after %s: %v", what, name, err)
			}
		}
		litter(t, folder, "s.bloom")
		if old, err := os.ReadFile(path); err != nil || string(old) != "old" {
			t.Errorf("%s: the old file is now %q, %v", name, old, err)
		}
	}
	// A folder that is none is refused at once; one that goes away fails the
	// Builder for good.
	folder := filepath.Join(t.TempDir(), "going")
	if _, err := NewBuilder(Config{}, spilling(folder)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	b, err := NewBuilder(Config{}, spilling(folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	for i := 0; err == nil && i < 20_000; i++ {
		err = b.Add(fmt.Appendf(nil, "%0200d", i))
	}
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "bloom: ") {
		t.Errorf("spilling into nowhere: %v", err)
	}
	if again := b.Add(nil); again != err {
		t.Errorf("after it: %v", again)
	}
	if again := b.Save(t.Context(), filepath.Join(t.TempDir(), "s")); again == nil || again.Error() != err.Error() {
		t.Errorf("after it: %v", again)
	}
}

// Snapshots and new records give what all records give, whatever the
// snapshots' own protocol, seed and key.
func TestBuilderFromSnapshots(t *testing.T) {
	want := mustNew(t, Config{}, "1", "2", "3", "4", "5")
	b, err := NewBuilder(Config{}, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, s := range []*Snapshot{
		mustNew(t, Config{}, "1", "2"), mustNew(t, Config{Seed: []byte("other")}, "2", "3"),
		mustNew(t, Config{Protocol: BLAKE2b, Key: repeat(20)}, "3"), mustNew(t, labConfig, "4"),
	} {
		if err := b.AddSnapshot(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Add([]byte("5")); err != nil {
		t.Fatal(err)
	}
	got, err := b.Snapshot(t.Context())
	if err != nil || !bytes.Equal(asFile(t, got), asFile(t, want)) {
		t.Errorf("other bytes, %v", err)
	}

	// Refused, not mixed: a protocol that does not admit the records, a
	// snapshot that is not there.
	b, _ = NewBuilder(Config{Protocol: KeyIndexV1}, BuildOptions{})
	if err := b.AddSnapshot(t.Context(), want); !errors.Is(err, ErrItem) {
		t.Error(err)
	}
	if err := b.AddSnapshot(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.AddSnapshot(ctx, want); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A refused record does no harm to the rest, and limits hold.
func TestBuilderLimits(t *testing.T) {
	b, _ := NewBuilder(Config{Protocol: ESBloomV1, Bits: 64, Hashes: 1}, BuildOptions{MaxRecords: 3, MaxBytes: 8})
	for _, c := range []struct {
		record string
		want   error
	}{{"a", nil}, {"\xff", ErrItem}, {strings.Repeat("b", 8), ErrTooLarge}, {strings.Repeat("b", 7), nil}, {"", nil}, {"", ErrTooLarge}} {
		if err := b.AddString(c.record); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.record, err, c.want)
		}
	}
	s, err := b.Snapshot(t.Context())
	if err != nil || s.Len() != 3 {
		t.Errorf("%v, %v", s, err)
	}
	for _, b := range []*Builder{nil, {}} {
		_, err := b.Snapshot(t.Context())
		for i, err := range []error{b.Add(nil), b.AddString(""), err, b.Save(t.Context(), "x")} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := b.Close(); err != nil || fmt.Sprint(b) != "bloom.Builder(not open)" {
			t.Error(b, err)
		}
	}
	if _, err := NewBuilder(Config{Bits: 1}, BuildOptions{}); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// Adding, ending and closing from many goroutines: answers or errors.
func TestBuilderRaces(t *testing.T) {
	for range 20 {
		b, _ := NewBuilder(Config{}, BuildOptions{})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 500 {
					if err := b.Add(fmt.Append(nil, g, i)); err != nil && !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
				}
				if g == 7 {
					b.Close()
				} else if s, err := b.Snapshot(t.Context()); err == nil {
					s.LookupString("0")
				} else if !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
