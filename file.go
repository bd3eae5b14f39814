package bloom

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/b1cc2673/bloom/internal/mapping"
)

// Files as bytes: writing, opening and reading them. format.go has their form,
// save.go puts them in place.

// header describes the filter as a file of its own, or as part of one.
func (f *Filter) header(kind uint8) header {
	return header{kind: kind, protocol: f.scheme.which, k: f.k, seed: f.scheme.seed, keyed: f.scheme.keyed, m: f.m, n: f.n, filter: f.digest}
}

// headerOf makes or returns the header of a snapshot. One that was built in
// memory has it made at the first call, for a pass of SHA-256 over the set.
func (s *Snapshot) headerOf() *header {
	s.file.once.Do(func() {
		if s.file.header != nil {
			return
		}
		h := s.filter.header(kindSnapshot)
		h.setBytes = s.set.size
		h.index, h.set = sectionDigest(s.set.index), sectionDigest(s.set.data)
		if h.keyed {
			h.keyCheck = h.seal(s.filter.scheme.hidden.start)
		}
		s.file.header = &h
	})
	return s.file.header
}

// Identity is the SHA-256 of the file's header, which holds digests of all
// sections: it covers protocol, m, k, seed, records and, through the seal,
// the key. Two snapshots are equal, byte for byte, where their identities are.
// The first call for a snapshot that was built in memory reads all of it.
// Errors: ErrClosed.
func (s *Snapshot) Identity() ([sha256.Size]byte, error) {
	if err := s.open(); err != nil {
		return [sha256.Size]byte{}, err
	}
	return s.headerOf().sum(), nil
}

// Identity is the identity of the filter's own file. Errors: ErrClosed.
func (f *Filter) Identity() ([sha256.Size]byte, error) {
	if err := f.open(); err != nil {
		return [sha256.Size]byte{}, err
	}
	h := f.sealedHeader()
	return h.sum(), nil
}

func (f *Filter) sealedHeader() header {
	h := f.header(kindFilter)
	if h.keyed {
		h.keyCheck = h.seal(f.scheme.hidden.start)
	}
	return h
}

// A file is what a snapshot keeps of where it came from, and of being open.
type file struct {
	once    sync.Once
	header  *header          // made at first need, or read
	source  io.ReaderAt      // of the whole file; nil: built or read into memory
	mapping *mapping.Mapping // that source is; nil: a reader
	closed  atomic.Bool
}

// Close makes every further call answer with ErrClosed. Calls in progress end
// as they would have; a mapping is released when nothing refers to it any more,
// so that Close never races a lookup, and a snapshot that is dropped without
// Close leaks nothing. Closing again does nothing. A filter that
// [Snapshot.Filter] gave stays open. Error: ErrClosed for a nil or zero
// Snapshot.
func (s *Snapshot) Close() error {
	if s == nil || s.filter == nil {
		return s.open()
	}
	s.file.closed.Store(true)
	return nil
}

// OpenOptions say how a file is opened. The zero value is good for any file
// without a key. Printing it does not show the key.
type OpenOptions struct {
	Key []byte // the secret of a file that was made with one; nil: none

	// Mapped leaves filter and index in the mapping, too, where they are
	// shared between processes and opened at once, whatever their size. The
	// price: they are not verified when opened, so that damage to the filter,
	// before or after, can make a lookup miss a member until [Snapshot.Verify]
	// finds it. So it is if the file is cut short: what is cut off of its last
	// page reads as zeros. Where files cannot be mapped they are read as without
	// it.
	Mapped bool

	// MaxMemory is how many bytes opening may allocate for what the file
	// holds: filter and index, for [Read] all of it, which takes up to three
	// times that while it is at work. It also holds for a bucket that is read
	// later, and for what [Snapshot.Verify] makes again of the filter. What
	// takes more is ErrTooLarge. A sparse file costs its sender almost nothing
	// whatever its size, so 0 does not mean unlimited: it means 8 GiB, or 256
	// MiB where an address has 32 bits.
	MaxMemory uint64
}

// String shows all fields but the key.
func (o OpenOptions) String() string {
	return fmt.Sprintf("{Key:%s Mapped:%t MaxMemory:%d}", Config{Key: o.Key}.secret(), o.Mapped, o.MaxMemory)
}

// Format prints String's text under every verb that fmt asks it for: see
// [Config] for the rest.
func (o OpenOptions) Format(f fmt.State, verb rune) { fmt.Fprint(f, o.String()) }

// LogValue implements [slog.LogValuer] without the key.
func (o OpenOptions) LogValue() slog.Value { return slog.StringValue(o.String()) }

// MarshalJSON writes the fields, a key as an empty one, as a Config does.
func (o OpenOptions) MarshalJSON() ([]byte, error) {
	type plain OpenOptions
	if o.Key != nil {
		o.Key = []byte{}
	}
	return json.Marshal(plain(o))
}

// most is how many bytes may be allocated.
func (o OpenOptions) most() uint64 {
	most := o.MaxMemory
	if most == 0 {
		most = mostMemory
	}
	return min(most, math.MaxInt-slack)
}

func (o OpenOptions) allow(n uint64) error { return allow(n, o.most()) }

// allow refuses to make room for more than most bytes.
func allow(n, most uint64) error {
	if n > most {
		return fmt.Errorf("%w: it takes %d bytes of memory; MaxMemory is %d", ErrTooLarge, n, most)
	}
	return nil
}

// A sectionWriter writes sections and counts what was written.
type sectionWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (w *sectionWriter) write(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	n, err := w.w.Write(b)
	w.n += int64(max(0, min(n, len(b))))
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	} else if err == nil && n > len(b) {
		err = fmt.Errorf("the writer says it wrote %d of %d bytes", n, len(b))
	}
	w.err = while("writing", err)
}

func (w *sectionWriter) pad() {
	if rest := w.n % sectionAlign; rest != 0 {
		w.write(make([]byte, sectionAlign-rest))
	}
}

// A section is bytes of a file: held, or in a source that is verified by the
// section's digest when it is copied.
type section struct {
	held   []byte
	source io.ReaderAt
	at     int64
	size   uint64
	digest [sha256.Size]byte
}

// section writes the section and appends the checks of its chunks.
func (w *sectionWriter) section(s section, checks *[]byte) {
	if s.source == nil {
		for i := range (len(s.held) + sectionChunk - 1) / sectionChunk {
			w.write(chunk(s.held, i))
		}
		*checks = appendChecks(*checks, s.held)
		return
	}
	var sums [][sha256.Size]byte
	buf := make([]byte, min(s.size, sectionChunk))
	for done := uint64(0); done < s.size && w.err == nil; {
		b := buf[:min(s.size-done, sectionChunk)]
		if err := readFullAt(s.source, b, s.at+int64(done)); err != nil {
			w.err = reading(err)
			return
		}
		sums = append(sums, sha256.Sum256(b))
		*checks = appendChecks(*checks, b)
		w.write(b)
		done += uint64(len(b))
	}
	if w.err == nil && joinDigests(sums) != s.digest {
		w.err = fmt.Errorf("%w: what was written is not what the header says: a section has changed", ErrCorrupt)
	}
}

// WriteTo writes the snapshot in the form of SPEC.md, section 5: the bytes
// depend on nothing but the records and the resolved configuration. It returns
// how many bytes were written, and the writer's error, wrapped. Bytes that are
// not held in memory are verified on the way; if they have changed the error is
// ErrCorrupt, and what was written is of no use. The writer sees the snapshot's
// own bytes and, as io.Writer says, must not change them.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	if w == nil {
		return 0, fmt.Errorf("%w: nil writer", ErrConfig)
	}
	h := s.headerOf()
	l, _ := h.layout()
	src := s.file.source
	out := sectionWriter{w: w}
	var checks, ignored []byte
	out.write(h.append(nil))
	out.section(section{s.filter.bits, src, headerSize, l.filter, h.filter}, &checks)
	out.pad()
	out.section(section{s.set.index, src, int64(l.index), l.indexLen, h.index}, &checks)
	out.pad()
	out.write(checks)
	out.pad()
	out.section(section{s.set.data, src, int64(l.buckets), h.setBytes, h.set}, &ignored)
	return out.n, out.err
}

// WriteTo writes the filter alone, as [Snapshot.WriteTo] writes a snapshot.
func (f *Filter) WriteTo(w io.Writer) (int64, error) {
	if err := f.open(); err != nil {
		return 0, err
	}
	if w == nil {
		return 0, fmt.Errorf("%w: nil writer", ErrConfig)
	}
	h := f.sealedHeader()
	out := sectionWriter{w: w}
	var checks []byte
	bits := section{held: f.bits, size: uint64(len(f.bits)), digest: f.digest}
	if f.mapping != nil {
		bits.source, bits.at = f.mapping, headerSize // the filter is the first section in every file
	}
	out.write(h.append(nil))
	out.section(bits, &checks)
	out.pad()
	out.write(checks)
	return out.n, out.err
}

// while says what was done when err came, unless err says whose it is already.
func while(doing string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "bloom: ") {
		return err
	}
	return fmt.Errorf("bloom: %s: %w", doing, err)
}

func reading(err error) error { return while("reading", err) }

// readFullAt fills b, whatever a reader makes of the rules of io.ReaderAt. An
// early end is ErrCorrupt.
func readFullAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	var fault *mapping.Fault
	switch {
	case errors.As(err, &fault):
		return fmt.Errorf("%w: the mapped file has become shorter: %w", ErrCorrupt, err)
	case n == len(b):
		return nil
	case n < 0 || n > len(b):
		return fmt.Errorf("the reader says it read %d of %d bytes", n, len(b))
	case err == nil || err == io.EOF || err == io.ErrUnexpectedEOF:
		return fmt.Errorf("%w: %d of %d bytes at %d: %w", ErrCorrupt, n, len(b), at, io.ErrUnexpectedEOF)
	}
	return err
}

// readHeader reads and checks the header of a file of size bytes.
func readHeader(r io.ReaderAt, size int64, kind uint8, o OpenOptions) (h header, err error) {
	if size < 0 {
		return h, fmt.Errorf("%w: a file of %d bytes", ErrCorrupt, size)
	}
	b := make([]byte, min(size, headerSize))
	if err := readFullAt(r, b, 0); err != nil {
		return h, reading(err)
	}
	if h, err = parseHeader(b); err != nil {
		return h, err
	}
	if err := h.is(kind); err != nil {
		return h, err
	}
	if l, _ := h.layout(); l.total != uint64(size) {
		return h, fmt.Errorf("%w: %d bytes, and the header says %d", ErrCorrupt, size, l.total)
	}
	return h, h.unseal(o.Key)
}

func (h *header) is(kind uint8) error {
	names := [...]string{kindSnapshot: "a snapshot", kindFilter: "a filter alone"}
	openers := [...]string{kindSnapshot: "Open, or Read", kindFilter: "OpenFilter, or ReadFilter"}
	if h.kind != kind {
		return fmt.Errorf("%w: this is %s; %s opens it", ErrVersion, names[h.kind], openers[h.kind])
	}
	return nil
}

// newFilter returns the filter that the header describes, without its bits.
func (h *header) newFilter(key []byte) *Filter {
	cfg := Config{Protocol: h.protocol, Bits: h.m, Hashes: h.k, Seed: h.seed, Key: key}
	return &Filter{scheme: newScheme(cfg), m: h.m, k: h.k, n: h.n, digest: h.filter}
}

// newSet returns the set that the header describes, without its sections.
func (h *header) newSet(f *Filter) frozenSet {
	set := newFrozenSet(h.n)
	set.scheme, set.size, set.salt = f.scheme.setScheme(), h.setBytes, h.salt()
	return set
}

// loadSection reads a section, whose size is allowed, chunk by chunk, on all
// cores, and compares each with its check.
func loadSection(r io.ReaderAt, at, size uint64, checks []byte) ([]byte, error) {
	data := makeSection(size)
	errs := make([]error, len(checks)/4)
	parallel(cores(), len(errs), func(_, i int) {
		b := chunk(data, i)
		if errs[i] = readFullAt(r, b, int64(at)+int64(i)*sectionChunk); errs[i] == nil &&
			crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(checks[4*i:]) {
			errs[i] = fmt.Errorf("%w: %d bytes at %d do not match their checksum", ErrCorrupt, len(b), at+uint64(i)*sectionChunk)
		}
	})
	for _, err := range errs { // the first, so that it does not depend on timing
		if err != nil {
			return nil, reading(err)
		}
	}
	return data, nil
}

// zeros checks the padding between sections.
func zeros(r io.ReaderAt, from, to uint64) error {
	b := make([]byte, to-from)
	if err := readFullAt(r, b, int64(from)); err != nil {
		return reading(err)
	}
	return checkZeros(b, to)
}

func checkZeros(padding []byte, to uint64) error {
	for _, x := range padding {
		if x != 0 {
			return fmt.Errorf("%w: padding before %d is not zero", ErrCorrupt, to)
		}
	}
	return nil
}

// openFilter opens the filter section of a file, mapped or loaded.
func openFilter(r io.ReaderAt, m *mapping.Mapping, h *header, o OpenOptions) (f *Filter, checks []byte, err error) {
	l, _ := h.layout()
	f = h.newFilter(o.Key)
	if m != nil && o.Mapped {
		f.mapping, f.bits, f.most = m, m.Bytes()[headerSize:headerSize+l.filter], o.most()
		return f, nil, nil
	}
	if err := o.allow(l.filter + l.indexLen + l.checksLen); err != nil {
		return nil, nil, err
	}
	checks = make([]byte, l.checksLen)
	if err := readFullAt(r, checks, int64(l.checks)); err != nil {
		return nil, nil, reading(err)
	}
	if err := zeros(r, headerSize+l.filter, l.index); err != nil {
		return nil, nil, err
	}
	if f.bits, err = loadSection(r, headerSize, l.filter, checks[:4*l.filterChunks]); err != nil {
		return nil, nil, err
	}
	if h.keyed && sectionDigest(f.bits) != h.filter { // which is sealed: checksums anyone can make
		return nil, nil, fmt.Errorf("%w: the filter does not match its digest", ErrCorrupt)
	}
	return f, checks[4*l.filterChunks:], f.checkSpare()
}

// checkSpare refuses bits beyond m.
func (f *Filter) checkSpare() error {
	if f.m%8 != 0 && f.bits[len(f.bits)-1]>>(f.m%8) != 0 {
		return fmt.Errorf("%w: bits beyond m = %d are set", ErrCorrupt, f.m)
	}
	return nil
}

// openSnapshot opens a snapshot behind a reader. If it is mapped, too, the
// reader is not used any more afterwards.
func openSnapshot(r io.ReaderAt, m *mapping.Mapping, size int64, o OpenOptions) (*Snapshot, error) {
	h, err := readHeader(r, size, kindSnapshot, o)
	if err != nil {
		return nil, err
	}
	l, _ := h.layout()
	f, checks, err := openFilter(r, m, &h, o)
	if err != nil {
		return nil, err
	}
	set := h.newSet(f)
	source := r
	if m != nil {
		source = m
		set.data = m.Bytes()[l.buckets:l.total:l.total]
	}
	set.source, set.at, set.most = source, int64(l.buckets), o.most()
	if m != nil && o.Mapped {
		set.index = m.Bytes()[l.index : l.index+l.indexLen]
	} else {
		if set.index, err = loadSection(r, l.index, l.indexLen, checks); err != nil {
			return nil, err
		}
		if h.keyed && sectionDigest(set.index) != h.index {
			return nil, fmt.Errorf("%w: the index does not match its digest", ErrCorrupt)
		}
		if err := set.checkIndex(); err != nil {
			return nil, err
		}
		if err := errors.Join(zeros(r, l.index+l.indexLen, l.checks), zeros(r, l.checks+l.checksLen, l.buckets)); err != nil {
			return nil, err
		}
	}
	return &Snapshot{filter: f, set: set, file: &file{header: &h, source: source, mapping: m}}, nil
}

// mapFile opens path and maps it, where that can be done.
func mapFile(path string) (f *os.File, m *mapping.Mapping, size int64, err error) {
	// Before it is opened, which can wait for ever if it is a pipe.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not a regular file: %w", fs.ErrInvalid)}
	}
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, nil, 0, fmt.Errorf("bloom: opening: %w", err)
	}
	info, err = f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, 0, fmt.Errorf("bloom: opening: %w", err)
	}
	m, _ = mapping.Open(f, info.Size())
	return f, m, info.Size(), nil
}

// release closes a file that is mapped, or of no use. One that is neither
// stays open until nothing refers to it any more.
func release(f *os.File, m *mapping.Mapping, err error) {
	if m != nil || err != nil {
		f.Close() // nothing was written
	}
}

// Open opens a saved snapshot. It verifies header, filter and index and holds
// them on the heap; the records stay in the file, mapped where the system can
// do that, and are verified when they decide: a bucket's head before every
// answer that follows a "maybe", the records' bytes before "duplicate". All
// that is against damage. Against who could tamper with the file, call
// [Snapshot.Verify] first, or [Read] it: with a key they notice, without one
// [Snapshot.Identity] has to come another way.
//
// A file that is cut short while it is open makes lookups return errors (with
// Mapped, those that meet what is cut off; see there). Replacing it, as
// [Snapshot.Save] does, leaves what is open as it was; whoever writes into it
// changes what lookups find, or makes them fail. Where files are not mapped, as
// on Windows, the file stays open, and may not be replaceable meanwhile.
//
// Errors: ErrVersion for what is not a snapshot of a known format and
// protocol; ErrCorrupt; ErrKey for a missing, superfluous or wrong key;
// ErrTooLarge; and those of the file system. They name the file; later ones do
// not.
func Open(path string, o OpenOptions) (*Snapshot, error) {
	file, m, size, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	s, err := openSnapshot(file, m, size, o)
	release(file, m, err)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return s, nil
}

// OpenReaderAt is [Open] for the size bytes behind any reader, such as an
// embedded file or a part of a larger one. The reader must allow reads at the
// same time, as io.ReaderAt says. A lookup whose item the filter admits reads
// one bucket, in one read or two, into memory of its own; others read
// nothing. Mapped has no effect. Errors of the reader are wrapped.
func OpenReaderAt(r io.ReaderAt, size int64, o OpenOptions) (*Snapshot, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: nil reader", ErrConfig)
	}
	return openSnapshot(r, nil, size, o)
}

// OpenFilter opens a filter that [Filter.Save] wrote. It verifies the filter
// and holds it on the heap, unless o says Mapped; a mapping goes with what
// refers to it last, and there is nothing to close. Errors: as for [Open].
func OpenFilter(path string, o OpenOptions) (*Filter, error) {
	file, m, size, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h, err := readHeader(file, size, kindFilter, o)
	var f *Filter
	if err == nil {
		f, _, err = openFilter(file, m, &h, o)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return f, nil
}

// A strictReader holds a reader to the rules of io.Reader.
type strictReader struct {
	r     io.Reader
	empty int // reads in a row that gave nothing
}

func (s *strictReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n < 0 || n > len(p) {
		return 0, fmt.Errorf("the reader says it read %d of %d bytes", n, len(p))
	}
	if s.empty++; n > 0 || err != nil {
		s.empty = 0
	}
	if s.empty == 100 {
		return 0, io.ErrNoProgress
	}
	return n, err
}

// readAll reads the sections of a file of one kind from a stream, not a byte
// more, each into memory of its own, and compares them with the checks.
func readAll(r io.Reader, kind uint8, o OpenOptions) (h header, filter, index, buckets []byte, err error) {
	if r == nil {
		return h, nil, nil, nil, fmt.Errorf("%w: nil reader", ErrConfig)
	}
	r = &strictReader{r: r}
	b := make([]byte, headerSize)
	n, err := io.ReadFull(r, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return h, nil, nil, nil, reading(err)
	}
	if h, err = parseHeader(b[:n]); err != nil {
		return h, nil, nil, nil, err
	}
	if err := h.is(kind); err != nil {
		return h, nil, nil, nil, err
	}
	if err := h.unseal(o.Key); err != nil {
		return h, nil, nil, nil, err
	}
	l, _ := h.layout()
	if err := o.allow(l.total); err != nil {
		return h, nil, nil, nil, err
	}
	at := uint64(headerSize)
	section := func(begin, size uint64) (data []byte) {
		if err == nil {
			data, err = readSection(r, at, begin, size)
			at = begin + size
		}
		return data
	}
	filter = section(headerSize, l.filter)
	index = section(l.index, l.indexLen)
	checks := section(l.checks, l.checksLen)
	if kind == kindSnapshot {
		buckets = section(l.buckets, h.setBytes)
	}
	if err == nil && !bytes.Equal(checks, appendChecks(appendChecks(nil, filter), index)) {
		err = fmt.Errorf("%w: filter and index do not match their checksums", ErrCorrupt)
	}
	return h, filter, index, buckets, err
}

// readSection reads the section that begins at begin, and before it the
// padding from at on. It believes no size before the bytes are there. Behind
// the section it leaves the slack that lookups need.
func readSection(r io.Reader, at, begin, size uint64) (data []byte, err error) {
	full := func(b []byte) (n int, err error) {
		if n, err = io.ReadFull(r, b); err == io.EOF || err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("%w: it ends in the section from %d to %d: %w", ErrCorrupt, begin, begin+size, io.ErrUnexpectedEOF)
		}
		return n, reading(err)
	}
	padding := make([]byte, begin-at)
	if _, err := full(padding); err != nil {
		return nil, err
	}
	if err := checkZeros(padding, begin); err != nil {
		return nil, err
	}
	for total := int(size); len(data) < total || data == nil; {
		if len(data) >= cap(data)-slack { // as much again as came, and never more than is to come
			grown := makeSection(uint64(min(total, max(2*len(data), sectionChunk)) + slack))
			data = grown[:copy(grown, data)]
		}
		n, err := full(data[len(data):min(total, cap(data)-slack)])
		data = data[:len(data)+n]
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// Read reads a snapshot from a stream into memory and verifies everything,
// which takes about as long as building it did. What follows the snapshot in
// the stream is left unread; it reads in small pieces and large ones, so a
// slow stream wants a buffer. Lookups then verify nothing and allocate
// nothing. Mapped has no effect.
//
// Errors: as for [Open]; those of the reader are wrapped.
func Read(r io.Reader, o OpenOptions) (*Snapshot, error) {
	h, filter, index, buckets, err := readAll(r, kindSnapshot, o)
	if err != nil {
		return nil, err
	}
	f := h.newFilter(o.Key)
	f.bits = filter
	set := h.newSet(f)
	set.index, set.data, set.held = index, buckets, true
	s := &Snapshot{filter: f, set: set, file: &file{header: &h}}
	if err := s.verify(context.Background(), production); err != nil {
		return nil, err
	}
	return s, nil
}

// ReadFilter reads a filter from a stream, as [Read] reads a snapshot.
func ReadFilter(r io.Reader, o OpenOptions) (*Filter, error) {
	h, filter, _, _, err := readAll(r, kindFilter, o)
	if err != nil {
		return nil, err
	}
	f := h.newFilter(o.Key)
	f.bits = filter
	if err := f.Verify(); err != nil {
		return nil, err
	}
	return f, nil
}
