// Package bloom makes immutable Bloom membership prefilters: a filter that
// answers "no" or "maybe", and beside it the exact set that decides every
// "maybe" by comparing all bytes.
//
// [New] builds a [Snapshot] once from a finite set of byte records.
// [Snapshot.Lookup] asks its filter first. A "no" is final and costs one
// digest and one cache line. A "maybe" is a candidate only; the frozen set of
// the records then compares all bytes. Where the records live elsewhere,
// [Filter.Confirm] asks their holder instead.
//
// # What is promised
//
// A false duplicate is impossible: Duplicate is true only where exactly these
// bytes are a record. A member is never missed as long as it is asked for
// with the protocol, m, k, seed and key that the snapshot was built with, and
// the bits are intact. The positions of an item depend on nothing else: a
// [Protocol] is a framed, versioned use of SHA-256 or BLAKE2b that any
// language can recompute (SPEC.md), and [ReferencePositions] recomputes it by
// another road. Equal records and configuration give equal bytes.
//
// # What is not promised
//
// A small false-positive rate in one filter says nothing about another, and
// the asked rate is a mean over filters. Filters of overlapping records under
// one seed share their false positives. With a public configuration whoever
// chooses items can find false positives offline; a secret key with
// [BLAKE2b] prevents that, but not the replay of those observed. Time and
// memory accesses depend on the item. Equality of bytes is all that is
// decided: what is the same document, and what may be deleted, is the
// caller's to say.
//
// # Concurrency and ownership
//
// A Snapshot and a [Filter] never change and are safe for any number of
// goroutines; replace one as a whole, through an [sync/atomic.Pointer] say.
// What is passed in is copied where it is kept; what is handed out is a copy.
// Lookups allocate nothing, but for errors, and behind [OpenReaderAt].
//
// # Compatibility
//
// Positions of the five protocols are fixed for ever. Errors wrap [ErrConfig]
// and its sisters; their texts may change.
package bloom

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"

	"github.com/b1cc2673/bloom/internal/digest"
	"github.com/b1cc2673/bloom/internal/mapping"
)

// A Snapshot is a filter and the exact frozen set of the same records. It
// never changes; every method is safe for any number of goroutines. A nil or
// zero Snapshot answers with ErrClosed.
type Snapshot struct {
	filter *Filter // nil: never built
	set    frozenSet
	file   *file
}

// New builds a snapshot of the records that the sequence yields. It keeps
// copies, so that the sequence may use one buffer for all, drops duplicates,
// and chooses what cfg leaves at zero from the number of distinct records;
// equal records and configuration give equal bytes whatever their order and
// repetition. No records make a normal, empty snapshot.
//
// A sequence that can fail should note its error for the caller to check
// before the snapshot is trusted; see the example.
//
// Errors: ErrConfig for a configuration that no records fit, a rate out of
// reach, or a nil sequence; ErrItem for a record that the protocol does not
// admit, with its place in the sequence from 0; ErrTooLarge for more records
// than the protocol admits, repeats included, or for more than 8 GiB (256 MiB
// on 32-bit machines) of records, repeats and 36 bytes for each included, or of
// filter; the memory in use may come to four times that. A [Builder] takes more.
func New[T ~[]byte | ~string](cfg Config, records iter.Seq[T]) (*Snapshot, error) {
	b, err := NewBuilder(cfg, BuildOptions{})
	if err != nil {
		return nil, err
	}
	if records == nil {
		return nil, fmt.Errorf("%w: nil sequence of records", ErrConfig)
	}
	for record := range records {
		if err := add(b, record); err != nil {
			b.working.Wait()
			return nil, err
		}
	}
	return b.Snapshot(context.Background())
}

// A Result says how far a lookup came and what it found.
type Result struct {
	MaybePresent bool // the filter's answer: false is final
	ExactChecked bool // all bytes were compared: so it is after every "maybe", but for errors
	Duplicate    bool // exactly these bytes are a record
}

func (s *Snapshot) open() error {
	if s == nil || s.filter == nil {
		return fmt.Errorf("%w: nil or zero Snapshot", ErrClosed)
	}
	if s.file.closed.Load() {
		return fmt.Errorf("%w: the Snapshot was closed", ErrClosed)
	}
	return nil
}

// find is the one road of all lookups: the filter, then the set.
func (s *Snapshot) find(item []byte) (Result, uint64, error) {
	if err := s.open(); err != nil {
		return Result{}, 0, err
	}
	if f := s.filter; !f.scheme.admits(item) {
		if err := f.scheme.checkItem(item); err != nil {
			return Result{}, 0, err
		}
	}
	if s.file.mapping != nil {
		return s.findMapped(item)
	}
	return s.findAdmitted(item)
}

func (s *Snapshot) findMapped(item []byte) (r Result, ordinal uint64, err error) {
	defer runtime.KeepAlive(s.file.mapping)
	defer recoverFault(mapping.Guard(), &err)
	return s.findAdmitted(item)
}

func (s *Snapshot) findAdmitted(item []byte) (Result, uint64, error) {
	if s.filter.scheme.block {
		var w [4]uint64
		s.filter.scheme.digestTo(&w, item)
		if !s.filter.hasDigest(&w) {
			return Result{}, 0, nil
		}
		return s.confirm(&w, item)
	}
	if !s.filter.has(item) {
		return Result{}, 0, nil
	}
	w := plainScheme.digest(item)
	return s.confirm(&w, item)
}

// confirm is the exact check that follows a "maybe".
func (s *Snapshot) confirm(w *[4]uint64, item []byte) (Result, uint64, error) {
	ordinal, ok, err := s.set.find(w, item)
	if err != nil {
		return Result{MaybePresent: true}, 0, err
	}
	return Result{MaybePresent: true, ExactChecked: true, Duplicate: ok}, ordinal, nil
}

// recoverFault makes a fault in a mapping an error that says what happened.
func recoverFault(before bool, err *error) {
	mapping.Recover(before, recover(), err)
	if *err == nil {
		return // before fault is made, on the heap
	}
	var fault *mapping.Fault
	if errors.As(*err, &fault) {
		*err = fmt.Errorf("%w: the mapped file has become shorter: %w", ErrCorrupt, fault)
	}
}

// MaybePresent is the filter's answer alone: false is certain, true is not.
// Errors: ErrItem, ErrClosed.
func (s *Snapshot) MaybePresent(item []byte) (bool, error) {
	if err := s.open(); err != nil {
		return false, err
	}
	return s.filter.MaybePresent(item)
}

// Lookup asks the filter, and after a "maybe" compares all bytes of the
// records that have the item's digest tag and length. It allocates nothing,
// but behind [OpenReaderAt].
//
// Errors: ErrItem for what the protocol does not admit, ErrClosed; and for a
// file that is open ErrCorrupt, ErrTooLarge for a bucket above
// OpenOptions.MaxMemory, and those of the reader.
func (s *Snapshot) Lookup(item []byte) (Result, error) {
	r, _, err := s.find(item)
	return r, err
}

// LookupString is [Snapshot.Lookup] for the bytes of a string.
func (s *Snapshot) LookupString(item string) (Result, error) {
	return s.Lookup(digest.Bytes(item))
}

// Digest computes the digest of item that this snapshot, and every filter
// and snapshot of the same v2 protocol, seed and key, answers for.
// Errors: as for [Filter.Digest].
func (s *Snapshot) Digest(item []byte) (Digest, error) {
	if err := s.open(); err != nil {
		return Digest{}, err
	}
	return s.filter.Digest(item)
}

// LookupDigest is [Snapshot.Lookup] for an item whose digest d is known
// already. The bytes of item still decide; but a digest of other bytes than
// item's can make a member be missed. A digest of another protocol, seed or
// key is ErrItem; otherwise errors are as for Lookup.
func (s *Snapshot) LookupDigest(d Digest, item []byte) (r Result, err error) {
	if err := s.open(); err != nil {
		return r, err
	}
	if err := s.filter.scheme.checkDigest(d); err != nil {
		return r, err
	}
	if err := s.filter.scheme.checkItem(item); err != nil {
		return r, err
	}
	if s.file.mapping != nil {
		defer runtime.KeepAlive(s.file.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	if !s.filter.hasDigest(&d.words) {
		return r, nil
	}
	r, _, err = s.confirm(&d.words, item)
	return r, err
}

// LookupOrdinal is [Snapshot.Lookup] that also tells a record from every
// other: a duplicate's ordinal is its place, from 0, in the canonical order
// of [Snapshot.Records], so that names or values can be kept in a slice of
// [Snapshot.Len] elements beside the snapshot. It costs what a lookup costs;
// the snapshot pays a few bytes a bucket of eight records for it. For
// what is no record the ordinal is 0.
//
// Errors: as for Lookup.
func (s *Snapshot) LookupOrdinal(item []byte) (r Result, ordinal uint64, err error) {
	return s.find(item)
}

// Len returns the number of distinct records, 0 for a nil or zero Snapshot.
func (s *Snapshot) Len() uint64 {
	if s.open() != nil {
		return 0
	}
	return s.set.n
}

// Records yields copies of all records in canonical order: by digest, then
// by bytes. Each slice is the caller's own. An error, ErrClosed say, comes
// with a nil slice and ends the sequence.
func (s *Snapshot) Records() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := s.open(); err != nil {
			yield(nil, err)
			return
		}
		for b := range s.set.buckets {
			records, err := s.bucketRecords(b)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// bucketRecords returns copies of a bucket's records, verified unless the
// bytes are held. It is apart from the sequence, so that a panic of the
// caller's loop is none of recoverFault's business.
func (s *Snapshot) bucketRecords(b uint64) (records [][]byte, err error) {
	if s.file.mapping != nil {
		defer runtime.KeepAlive(s.file.mapping)
		defer recoverFault(mapping.Guard(), &err)
	}
	if !s.set.held {
		if err := s.set.allow(s.set.offset(b+1)-s.set.offset(b), b); err != nil {
			return nil, err
		}
	}
	_, err = s.set.checkBucket(b, func(e entry) bool {
		records = append(records, append(make([]byte, 0, len(e.record)), e.record...))
		return true
	})
	return records, err
}

// Filter returns the snapshot's filter as a value of its own: the snapshot may
// be dropped, and its records with it. It shares the bits and costs nothing.
func (s *Snapshot) Filter() (*Filter, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	return s.filter, nil
}

// PackedBits returns a copy of the filter's bits, as [Filter.PackedBits] does.
func (s *Snapshot) PackedBits() []byte {
	if s.open() != nil {
		return nil
	}
	return s.filter.PackedBits()
}
