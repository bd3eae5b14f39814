package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/b1cc2673/bloom"
	"github.com/cockroachdb/pebble/v2"
	pebblebloom "github.com/cockroachdb/pebble/v2/bloom"
	"go.etcd.io/bbolt"
)

// onDisk compares lookups in files, with the page cache warm: the round of
// inTurn that does not count warms it.
func onDisk(w io.Writer, r records, s scope) error {
	progress("%d × %d: on disk", r.n, r.size)
	folder, path, err := tempSnapshot(r)
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	lanes, closeAll, err := openSnapshots(path)
	if err != nil {
		return err
	}
	defer closeAll()

	db, err := newPebble(filepath.Join(folder, "pebble"), r)
	if err != nil {
		return err
	}
	defer db.Close()
	with, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return err
	}
	defer with.Close()

	bolt, err := newBolt(filepath.Join(folder, "bolt"), r)
	if err != nil {
		return err
	}
	defer bolt.Close()
	tx, err := bolt.Begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()

	const base = "pebble, Bloom filter"
	lanes = append(lanes,
		lane{base, pebbleSeek(with), false},
		lane{"pebble, `Get`", pebbleGet(db), false},
		lane{"bbolt", boltGet(tx.Bucket(boltBucket)), false})
	fmt.Fprintf(w, "\n### %d records of %d bytes, on disk\n\nThe page cache is warm. × is relative to %s: one iterator, "+
		"used again and again, with the filters of the last level, which pebble's `Get` leaves unread. "+
		"Pebble's own cache holds all of its blocks, unpacked. bbolt has one transaction for all lookups.\n\n", r.n, r.size, base)
	return answers(w, newAsker(r, s.queries), s.rounds, []mix{misses, hits}, lanes, base)
}

// tempSnapshot saves a snapshot in a temporary folder, the caller's to remove.
func tempSnapshot(r records) (folder, path string, err error) {
	if folder, err = os.MkdirTemp("", "bloom-bench-"); err != nil {
		return "", "", err
	}
	path = filepath.Join(folder, "snapshot")
	if err = newSnapshot(r).Save(path); err != nil {
		os.RemoveAll(folder)
	}
	return folder, path, err
}

// openSnapshots opens the file in the three ways there are.
func openSnapshots(path string) (lanes []lane, closeAll func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	opened := []io.Closer{f}
	closeAll = func() {
		for _, c := range opened {
			c.Close()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	for _, way := range []struct {
		name string
		open func() (*bloom.Snapshot, error)
	}{
		{"`OpenReaderAt`", func() (*bloom.Snapshot, error) {
			return bloom.OpenReaderAt(f, info.Size(), bloom.OpenOptions{})
		}},
		{"`Open`", func() (*bloom.Snapshot, error) { return bloom.Open(path, bloom.OpenOptions{}) }},
		{"`Open`, `Mapped`", func() (*bloom.Snapshot, error) { return bloom.Open(path, bloom.OpenOptions{Mapped: true}) }},
	} {
		s, err := way.open()
		if err != nil {
			return nil, nil, err
		}
		opened = append(opened, s)
		l := snapshotLookups(s)
		lanes = append(lanes,
			lane{nameOurs + ", " + way.name, l.single, false},
			lane{nameOurs + ", " + way.name + ", batches of 256", l.batch, false})
	}
	return lanes, closeAll, nil
}

// Quiet is a pebble logger that has only errors to tell.
type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...any) {}

// newPebble fills a database and compacts it to one level.
func newPebble(path string, r records) (_ *pebble.DB, err error) {
	o := &pebble.Options{
		CacheSize:          2 << 30, // more than it will need
		DisableWAL:         true,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             quiet{pebble.DefaultLogger},
		MemTableSize:       64 << 20,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = pebblebloom.FilterPolicy(10)
	}
	db, err := pebble.Open(path, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	b := db.NewBatch()
	for item := range r.all() {
		if err := b.Set(item, nil, nil); err != nil {
			return nil, err
		}
		if b.Count() == 1<<16 {
			if err := b.Commit(pebble.NoSync); err != nil {
				return nil, err
			}
			b = db.NewBatch()
		}
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return nil, err
	}
	return db, db.Compact(context.Background(), []byte{}, bytes.Repeat([]byte{0xff}, r.size+1), true)
}

func pebbleSeek(with *pebble.Iterator) func(queries) int {
	return func(q queries) (n int) {
		for i := range q.len() {
			item := q.item(i)
			if with.SeekPrefixGE(item) && bytes.Equal(with.Key(), item) {
				n++
			}
		}
		must(with.Error())
		return n
	}
}

func pebbleGet(db *pebble.DB) func(queries) int {
	return func(q queries) (n int) {
		for i := range q.len() {
			item := q.item(i)
			_, closer, err := db.Get(item)
			if errors.Is(err, pebble.ErrNotFound) {
				continue
			}
			must(err)
			must(closer.Close())
			n++
		}
		return n
	}
}

var boltBucket = []byte("records")

// newBolt fills a database in the order of its keys, which is its best case.
func newBolt(path string, r records) (_ *bbolt.DB, err error) {
	arena := make([]byte, 0, r.n*r.size)
	for item := range r.all() {
		arena = append(arena, item...)
	}
	sorted := slices.SortedFunc(slices.Chunk(arena, r.size), bytes.Compare)

	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	for part := range slices.Chunk(sorted, 1<<17) {
		err := db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(boltBucket)
			if err != nil {
				return err
			}
			b.FillPercent = 1
			for _, item := range part {
				if err := b.Put(item, nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return db, nil
}

func boltGet(b *bbolt.Bucket) func(queries) int {
	return func(q queries) (n int) {
		for i := range q.len() {
			item := q.item(i)
			if b.Get(item) != nil {
				n++
			}
		}
		return n
	}
}
