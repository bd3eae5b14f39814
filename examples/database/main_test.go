package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
)

func TestRun(t *testing.T) {
	const n = 2000
	var out bytes.Buffer
	if err := run(t.Context(), n, &out); err != nil {
		t.Fatal(err)
	}
	sum := func(label string) (number int) {
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, label) {
				if _, err := fmt.Sscan(line, &number); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				return number
			}
		}
		t.Fatalf("no line has %q:\n%s", label, &out)
		return 0
	}
	rows, lookups := sum(" rows, a filter"), sum(" lookups")
	spared, asked := sum(" spared"), sum(" asked")
	confirmed, denied := sum(" confirmed: all of them"), sum(" denied")
	if rows != n || lookups != 2*n || confirmed != n || spared+asked != lookups || confirmed+denied != asked {
		t.Errorf("the sums are wrong:\n%s", &out)
	}
	if denied == 0 || denied > n/25 { // keys and filter are the same in every run
		t.Errorf("%d of %d false positives at 1 %%", denied, n)
	}
	rows, old, swapped := sum(" rows added"), sum("the old filter"), sum("rebuild and swap")
	if rows != 21 || old < 15 || old > rows || swapped != 0 {
		t.Errorf("rows were added:\n%s", &out)
	}
}

func newStore(t *testing.T, n int) *store {
	t.Helper()
	folder := t.TempDir()
	db, err := bbolt.Open(filepath.Join(folder, "rows.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &store{db: db, path: filepath.Join(folder, "rows.bloom")}
	if err := s.insert(n, known); err != nil {
		t.Fatal(err)
	}
	return s
}

// A failing context is done after so many questions.
type failing struct {
	context.Context
	left int
}

func (f *failing) Err() error {
	if f.left--; f.left < 0 {
		return context.Canceled
	}
	return nil
}

// A source that fails half-way leaves no filter.
func TestSourceFails(t *testing.T) {
	s := newStore(t, 100)
	if err := s.rebuild(&failing{t.Context(), 50}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(s.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a filter of a part was saved: %v", err)
	}
}

// Readers miss nothing while the filter is rebuilt and swapped; what was deleted
// is denied by the database.
func TestSwapAndDelete(t *testing.T) {
	s := newStore(t, 200)
	ctx := t.Context()
	swap := func() {
		t.Helper()
		if err := s.rebuild(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
	}
	swap()
	var readers sync.WaitGroup
	defer readers.Wait()
	for range 2 {
		readers.Go(func() {
			for range 5 {
				if found, _, err := s.count(ctx, 200, known); err != nil || found != 200 {
					t.Errorf("found %d of 200: %v", found, err)
				}
			}
		})
	}
	if err := s.insert(20, added); err != nil {
		t.Fatal(err)
	}
	swap()
	key := fmt.Appendf(nil, added, 3)
	if err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete(key) }); err != nil {
		t.Fatal(err)
	}
	if r, err := s.lookup(ctx, key); err != nil || !r.ExactChecked || r.Duplicate {
		t.Errorf("deleted: %+v, %v", r, err)
	}
	if found, denied, err := s.count(ctx, 20, added); err != nil || found != 19 || denied != 1 {
		t.Errorf("found %d of 19, denied %d of 1: %v", found, denied, err)
	}
}

// An error of the database is no answer.
func TestDatabaseFails(t *testing.T) {
	s := newStore(t, 1)
	if err := s.rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.lookup(t.Context(), fmt.Appendf(nil, known, 0)); err == nil || r.ExactChecked {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.rebuild(t.Context()); err == nil {
		t.Error("rebuilt from a closed database")
	}
}
