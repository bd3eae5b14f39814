// Database puts a prefilter before an embedded database, bbolt: what the
// filter calls new is not asked for, what may be known the database decides.
//
// Usage, in this folder, which is a module of its own:
//
//	go run . [-rows N]
//
// It makes a database of N rows (100000) in a temporary folder, builds a filter
// of their keys, saves it, opens it as another process would, and looks up N
// keys that are present and N that are not. Then it adds rows.
//
// What to mind:
//
//   - A filter knows the rows of the moment it was built. Rows that were added
//     since are missed, in silence. Either a new filter is built and swapped in
//     before a new row must be found, as here; or rows are numbered, the number
//     of the last one is read in the transaction that builds the filter and kept
//     with it (Config.Seed can carry it, Stats shows it), and after a "no" the
//     database is asked for the rows with higher numbers, or a map of their
//     keys that is brought up to date. Where a row can commit after one with a
//     higher number, which in bbolt it cannot, ask from some way before.
//   - Deleted rows do no harm: the database denies them, at a question each,
//     until the next rebuild. A database restored from a backup wants one, too.
//   - The filter compares bytes. If the database takes "Ann" and "ann" for one
//     key, normalise keys before both.
//   - Where strangers choose keys, use BLAKE2b and a secret Config.Key, which
//     OpenOptions then needs too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/b1cc2673/bloom"
	"go.etcd.io/bbolt"
)

var bucket = []byte("rows")

// A store is a database behind a filter, for any number of goroutines.
type store struct {
	db      *bbolt.DB
	path    string // of the filter's file
	current atomic.Pointer[bloom.Filter]
	asked   atomic.Int64 // questions to the database
}

// insert adds n rows in one transaction.
func (s *store) insert(n int, format string) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		rows, err := tx.CreateBucketIfNotExists(bucket)
		for i := 0; i < n && err == nil; i++ {
			err = rows.Put(fmt.Appendf(nil, format, i), []byte("value"))
		}
		return err
	})
}

// rebuild saves a filter of all keys that the database has now.
func (s *store) rebuild(ctx context.Context) error {
	var snapshot *bloom.Snapshot
	err := s.db.View(func(tx *bbolt.Tx) (err error) {
		var failed error // a sequence cannot return an error, so it notes its own
		snapshot, err = bloom.New(bloom.Config{FPRate: 0.01}, func(yield func([]byte) bool) {
			c := tx.Bucket(bucket).Cursor()
			for key, _ := c.First(); key != nil; key, _ = c.Next() {
				if failed = ctx.Err(); failed != nil || !yield(key) { // New copies the key, which is bbolt's
					return
				}
			}
		})
		return errors.Join(err, failed) // without failed a part would pass for the whole
	})
	if err != nil {
		return fmt.Errorf("no new filter: %w", err)
	}
	filter, err := snapshot.Filter() // does not hold on to the keys
	if err != nil {
		return err
	}
	return filter.Save(s.path) // the old file or the new one, never a mixture
}

// reload swaps in the saved filter, which another process may have built.
func (s *store) reload() error {
	filter, err := bloom.OpenFilter(s.path, bloom.OpenOptions{})
	if err == nil {
		s.current.Store(filter) // lookups under way end with the old one
	}
	return err
}

// lookup asks the filter, and after a "maybe" the database.
func (s *store) lookup(ctx context.Context, key []byte) (bloom.Result, error) {
	return s.current.Load().Confirm(ctx, key, func(_ context.Context, key []byte) (held bool, err error) {
		s.asked.Add(1)
		err = s.db.View(func(tx *bbolt.Tx) error {
			held = tx.Bucket(bucket).Get(key) != nil
			return nil
		})
		return held, err
	})
}

// count looks up n keys: how many are present, and how many the database denied.
func (s *store) count(ctx context.Context, n int, format string) (present, denied int, err error) {
	for i := range n {
		r, err := s.lookup(ctx, fmt.Appendf(nil, format, i))
		switch {
		case err != nil:
			return 0, 0, err
		case r.Duplicate:
			present++
		case r.MaybePresent:
			denied++
		}
	}
	return present, denied, nil
}

const known, absent, added = "customer-%d", "stranger-%d", "newcomer-%d"

func run(ctx context.Context, n int, w io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "bloom-database")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	db, err := bbolt.Open(filepath.Join(folder, "rows.db"), 0o600, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	s := &store{db: db, path: filepath.Join(folder, "rows.bloom")}
	if err := s.insert(n, known); err != nil {
		return err
	}
	if err := s.rebuild(ctx); err != nil {
		return err
	}
	if err := s.reload(); err != nil {
		return err
	}
	stats, err := s.current.Load().Stats()
	if err != nil {
		return err
	}
	found, _, err := s.count(ctx, n, known)
	if err != nil {
		return err
	}
	wrong, denied, err := s.count(ctx, n, absent)
	if err != nil {
		return err
	}
	if found != n || wrong != 0 {
		return fmt.Errorf("found %d of %d present keys, and %d absent ones", found, n, wrong)
	}
	asked := int(s.asked.Load())
	fmt.Fprintf(w, "%8d rows, a filter of %d bytes\n", n, stats.FilterBytes)
	fmt.Fprintf(w, "%8d lookups, half of them of absent keys\n", 2*n)
	fmt.Fprintf(w, "%8d questions the database was spared\n", 2*n-asked)
	fmt.Fprintf(w, "%8d questions it was asked\n", asked)
	fmt.Fprintf(w, "%8d present keys it confirmed: all of them\n", found)
	fmt.Fprintf(w, "%8d false positives it denied\n", denied)
	fmt.Fprintf(w, "%8.3f %% of absent keys denied by it, %.3f %% realised rate of this filter, %.3f %% expected\n",
		100*float64(denied)/float64(n), 100*stats.RealisedFPRate, 100*stats.ExpectedFPRate)

	// Rows change.
	more := n/100 + 1
	if err := s.insert(more, added); err != nil {
		return err
	}
	before, _, err := s.count(ctx, more, added) // by chance a few are "maybe", and found
	if err != nil {
		return err
	}
	if err := s.rebuild(ctx); err != nil {
		return err
	}
	if err := s.reload(); err != nil {
		return err
	}
	after, _, err := s.count(ctx, more, added)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%8d rows added\n", more)
	fmt.Fprintf(w, "%8d of them missed by the old filter\n", more-before)
	fmt.Fprintf(w, "%8d of them missed after rebuild and swap\n", more-after)
	return nil
}

func main() {
	n := flag.Int("rows", 100_000, "rows of the database")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *n, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
