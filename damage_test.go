package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

// Files that are damaged or hostile, and readers that fail.

// An answer is what a lookup says.
type answer struct {
	item    []byte
	r       Result
	ordinal uint64
	bucket  uint64
}

// answers are those of the real snapshot.
func answers(t testing.TB, s *Snapshot, items [][]byte) (all []answer) {
	t.Helper()
	for _, item := range items {
		r, o, err := s.LookupOrdinal(item)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, answer{item, r, o, s.set.bucket(s.set.scheme.digest(item))})
	}
	return all
}

// asRead are the records of a bucket whose bytes may be anything, as far as
// its own lengths say where they are.
func asRead(s *frozenSet, b []byte) (records [][]byte) {
	if len(b) < 9 {
		return nil
	}
	count, code, at := uint64(b[0]>>2), b[0]&3, uint64(1)
	if count == escaped {
		count, at = binary.LittleEndian.Uint64(b[1:]), 9
	}
	size := uint64(len(b))
	at += uint64(s.width) + 4
	if count > size || code == 3 || at+count+count<<code+4 > size {
		return nil
	}
	h := head{count: int(count), code: int(code), lengths: b[at+count:]}
	at += count + count<<code + 4
	for i := range h.count {
		n := uint64(h.length(i))
		if n > size-at {
			return records
		}
		records = append(records, b[at:at+n])
		at += n
	}
	return records
}

// Every single-bit flip of a file: an error when it is opened, or by the
// lookup that meets it and by no other, or the right answer; never another
// answer. Read, which meets everything, and Verify refuse every flip. Of all
// but the first file it is every third bit, for time's sake.
func TestEveryBitFlip(t *testing.T) {
	for i, c := range []struct {
		name    string
		cfg     Config
		records [][]byte
		others  [][]byte
	}{
		{"sha256-v2", Config{}, varied(200), varied(300)[200:]},
		{"saturated", Config{Bits: 512, Hashes: 14}, shortened(120), shortened(180)[120:]},
		{"doc-membership-v1", Config{Protocol: DocMembershipV1, Bits: 500, Hashes: 4, Seed: []byte("lab")}, varied(40), varied(120)[40:]},
		{"key-index-v1", Config{Protocol: KeyIndexV1, Bits: 333, Hashes: 3}, eightBytes(50), eightBytes(120)[50:]},
		{"keyed", Config{Protocol: BLAKE2b, Key: repeat(16)}, eightBytes(20), eightBytes(60)[20:]},
	} {
		step := 1
		if i > 0 {
			step = 3
		}
		if testing.Short() {
			step = 41
		}
		if raceEnabled {
			step *= 5
		}
		t.Run(c.name, func(t *testing.T) { checkBitFlips(t, c.cfg, c.records, c.others, step) })
	}
}

// shortened is n different records of 1 to 4 bytes.
func shortened(n int) (records [][]byte) {
	for i := range n {
		records = append(records, fmt.Appendf(nil, "%x", i*i))
	}
	return records
}

func checkBitFlips(t *testing.T, cfg Config, records, others [][]byte, step int) {
	s := mustNew(t, cfg, records...)
	file := asFile(t, s)
	h, err := parseHeader(file)
	if err != nil {
		t.Fatal(err)
	}
	l, _ := h.layout()
	asked := answers(t, s, slices.Concat(records, others))
	member := map[string]answer{}
	in := make([][]int, s.set.buckets) // what is asked, by bucket
	for i, a := range asked {
		in[a.bucket] = append(in[a.bucket], i)
	}
	for _, a := range asked[:len(records)] {
		if !a.r.Duplicate {
			t.Fatalf("%q is missed", a.item)
		}
		member[string(a.item)] = a
	}
	key := OpenOptions{Key: cfg.Key}
	mapped := OpenOptions{Key: cfg.Key, Mapped: true}
	// check asks a snapshot that has one bit wrong in the given bucket: what
	// belongs there, what the bit made of it, and so many more.
	check := func(name string, got *Snapshot, bucket uint64, flipped []byte, more int) {
		for i := range len(in[bucket]) + more {
			if i < more {
				i = i % len(asked)
			} else {
				i = in[bucket][i-more]
			}
			a := &asked[i]
			r, o, err := got.LookupOrdinal(a.item)
			if err != nil && (!isOnly(err, ErrCorrupt) || a.bucket != bucket) || err == nil && (r != a.r || o != a.ordinal) {
				t.Errorf("%s: %q: %+v, %d, %v; want %+v, %d", name, a.item, r, o, err, a.r, a.ordinal)
			}
		}
		from, to := s.set.offset(bucket), s.set.offset(bucket+1)
		for _, item := range asRead(&s.set, flipped[l.buckets+from:l.buckets+to]) {
			r, o, err := got.LookupOrdinal(item)
			a, ok := member[string(item)]
			if err != nil && !isOnly(err, ErrCorrupt) && !isOnly(err, ErrItem) || err == nil && (r.Duplicate != ok || o != a.ordinal) {
				t.Errorf("%s: as flipped, %q: %+v, %d, %v", name, item, r, o, err)
			}
		}
	}

	type desk struct {
		file []byte
		path string
		disk *os.File
	}
	desks := make([]desk, runtime.GOMAXPROCS(0))
	for i := range desks {
		d := &desks[i]
		d.file, d.path = slices.Clone(file), tempFile(t, file)
		if d.disk, err = os.OpenFile(d.path, os.O_RDWR, 0); err != nil {
			t.Fatal(err)
		}
		defer d.disk.Close()
	}
	flips := (8*len(file) + step - 1) / step
	var opens atomic.Int64
	parallel(len(desks), flips, func(worker, i int) {
		d := &desks[worker]
		i *= step
		at, bit := uint64(i/8), byte(1)<<(i%8)
		name := fmt.Sprintf("bit %d of byte %d", i%8, at)
		write := func() {
			d.file[at] ^= bit
			if _, err := d.disk.WriteAt(d.file[at:at+1], int64(at)); err != nil {
				t.Error(err)
			}
		}
		write()
		defer write()
		// Everything is asked, by every way of opening, for a bit of every
		// other byte; for other bits all members by one way, and all that can
		// be near by the others.
		less := func(n int) int {
			if i/step%16 == int(at%8) {
				return len(asked)
			}
			return n
		}
		inBuckets := at >= l.buckets
		var bucket uint64
		if inBuckets {
			for s.set.offset(bucket+1) <= at-l.buckets {
				bucket++
			}
		}
		known := func(err error) bool { return isOnly(err, ErrCorrupt) || at < headerSize && isOnly(err, ErrVersion) }
		if _, err := Read(bytes.NewReader(d.file), key); !known(err) {
			t.Errorf("%s: Read: %v", name, err)
		}
		got, err := OpenReaderAt(bytes.NewReader(d.file), int64(len(d.file)), key)
		if !inBuckets {
			if !known(err) {
				t.Errorf("%s: OpenReaderAt: %v", name, err)
			}
			if _, err := Open(d.path, key); !known(err) {
				t.Errorf("%s: Open: %v", name, err)
			}
		} else if err != nil {
			t.Errorf("%s: OpenReaderAt: %v", name, err)
		} else {
			check(name+", OpenReaderAt", got, bucket, d.file, less(0))
			if err := got.Verify(); !isOnly(err, ErrCorrupt) {
				t.Errorf("%s: OpenReaderAt: Verify: %v", name, err)
			}
			if got, err = Open(d.path, key); err != nil {
				t.Errorf("%s: Open: %v", name, err)
			} else {
				check(name+", Open", got, bucket, d.file, less(len(records)))
			}
		}
		if got, err = Open(d.path, mapped); err == nil {
			if err := got.Verify(); !isOnly(err, ErrCorrupt) {
				t.Errorf("%s: Mapped: Verify: %v", name, err)
			}
			for j := range less(40) {
				// Until then a damaged filter may miss a member; nothing else.
				a := &asked[(i+j)%len(asked)]
				r, err := got.Lookup(a.item)
				if err != nil && !isOnly(err, ErrCorrupt) || err == nil && r.Duplicate != a.r.Duplicate && (r.Duplicate || at < headerSize || at >= headerSize+l.filter) {
					t.Errorf("%s: Mapped: %q: %+v, %v", name, a.item, r, err)
				}
			}
		} else if !known(err) {
			t.Errorf("%s: Mapped: %v", name, err)
		}
		if opens.Add(3)%3000 == 0 {
			runtime.GC() // so that mappings do not pile up
		}
	})
}

// The same for filters alone: refused, or with Mapped found by Verify.
func TestEveryBitFlipOfFilter(t *testing.T) {
	for _, cfg := range []Config{{Bits: 1024, Hashes: 3}, {Protocol: ESBloomV1, Bits: 100, Hashes: 3}, {Protocol: BLAKE2b, Key: repeat(20)}} {
		file := asFile(t, filterOf(t, mustNew(t, cfg, eightBytes(30)...)))
		h, _ := parseHeader(file)
		l, _ := h.layout()
		path := tempFile(t, file)
		disk, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close()
		for i := range 8 * len(file) {
			if testing.Short() && i%7 != 0 {
				continue
			}
			flipped := slices.Clone(file)
			flipped[i/8] ^= 1 << (i % 8)
			if _, err := disk.WriteAt(flipped, 0); err != nil {
				t.Fatal(err)
			}
			_, err1 := ReadFilter(bytes.NewReader(flipped), OpenOptions{Key: cfg.Key})
			_, err2 := OpenFilter(path, OpenOptions{Key: cfg.Key})
			for _, err := range []error{err1, err2} {
				if !isOnly(err, ErrCorrupt) && !isOnly(err, ErrVersion) {
					t.Errorf("%v: bit %d: %v", cfg, i, err)
				}
			}
			f, err := OpenFilter(path, OpenOptions{Key: cfg.Key, Mapped: true})
			if at := uint64(i / 8); err == nil && at >= headerSize && at < headerSize+l.filter {
				err = f.Verify()
			} else if at >= headerSize {
				continue
			}
			if !isOnly(err, ErrCorrupt) && !isOnly(err, ErrVersion) {
				t.Errorf("%v: bit %d, mapped: %v", cfg, i, err)
			}
		}
	}
}

// Every beginning of a file that is not all of it is refused, and so is a
// file with a byte more, which only Read leaves to who reads on.
func TestEveryTruncation(t *testing.T) {
	court := newCourt(t)
	for _, cfg := range []Config{{}, {Protocol: BLAKE2b, Key: repeat(16)}} {
		s := mustNew(t, cfg, varied(50)...)
		for kind, file := range map[uint8][]byte{kindSnapshot: asFile(t, s), kindFilter: asFile(t, filterOf(t, s))} {
			for n := len(file) - 1; n >= 0; n-- {
				if testing.Short() && n%7 != 0 && len(file)-n > 70 {
					continue
				}
				_, errs := court.open(kind, file[:n], OpenOptions{Key: cfg.Key})
				for way, err := range errs {
					if !isOnly(err, ErrCorrupt) {
						t.Errorf("%v, kind %d, %d of %d bytes, %s: %v", cfg, kind, n, len(file), way, err)
					}
				}
			}
			opened, errs := court.open(kind, append(file[:len(file):len(file)], 0), OpenOptions{Key: cfg.Key})
			for way, err := range errs {
				if strings.HasPrefix(way, "Read") != (err == nil) || err != nil && !isOnly(err, ErrCorrupt) {
					t.Errorf("%v, kind %d, one byte more: %s: %v, %v", cfg, kind, way, opened[way], err)
				}
			}
		}
	}
}

var errBroken = errors.New("the line is broken")

// A stream that fails at any offset: its own error comes through, and what a
// reader that hands out single bytes gives is read all the same.
func TestFailingStreams(t *testing.T) {
	s := mustNew(t, Config{}, varied(100)...)
	for kind, file := range map[uint8][]byte{kindSnapshot: asFile(t, s), kindFilter: asFile(t, filterOf(t, s))} {
		read := func(r io.Reader) error {
			if kind == kindFilter {
				f, err := ReadFilter(r, OpenOptions{})
				if err == nil && !bytes.Equal(asFile(t, f), file) {
					t.Error("another filter")
				}
				return err
			}
			s, err := Read(r, OpenOptions{})
			if err == nil && !bytes.Equal(asFile(t, s), file) {
				t.Error("another snapshot")
			}
			return err
		}
		for n := range file {
			for _, wrap := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.DataErrReader} {
				err := read(wrap(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(errBroken))))
				if !errors.Is(err, errBroken) || errors.Is(err, ErrCorrupt) || !strings.HasPrefix(err.Error(), "bloom: ") {
					t.Fatalf("kind %d: broken at %d: %v", kind, n, err)
				}
			}
		}
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with EOF": iotest.DataErrReader,
			"an error just behind": func(r io.Reader) io.Reader {
				return iotest.DataErrReader(io.MultiReader(r, iotest.ErrReader(errBroken)))
			},
		} {
			if err := read(wrap(bytes.NewReader(file))); err != nil {
				t.Errorf("kind %d: %s: %v", kind, name, err)
			}
		}
		if err := read(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(file)))); !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

// A readerAt does what it is told with reads that touch the byte at.
type readerAt struct {
	file  []byte
	at    int64
	wrong func(n int) (int, error)
}

func (r *readerAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(r.file).ReadAt(p, off)
	if off <= r.at && r.at < off+int64(len(p)) {
		return r.wrong(n)
	}
	return n, err
}

// A reader that fails at any offset, or breaks the rules of io.ReaderAt
// there: every call that needs the byte gives an error, the reader's own if
// it has one, and every other call answers right.
func TestFailingReaderAt(t *testing.T) {
	s := mustNew(t, Config{}, varied(60)...)
	file := asFile(t, s)
	asked := answers(t, s, varied(90))
	h, _ := parseHeader(file)
	l, _ := h.layout()
	for name, c := range map[string]struct {
		wrong func(n int) (int, error)
		want  error // nil: any
	}{
		"error":               {func(int) (int, error) { return 0, errBroken }, errBroken},
		"short, no error":     {func(n int) (int, error) { return n - 1, nil }, ErrCorrupt},
		"more than was asked": {func(n int) (int, error) { return n + 1, nil }, nil},
		"all and an error":    {func(n int) (int, error) { return n, errBroken }, nil},
	} {
		works := name == "all and an error" // the rules allow it, and the bytes are there
		fails := func(err error) bool {
			return err != nil && strings.HasPrefix(err.Error(), "bloom: ") && (c.want == nil || errors.Is(err, c.want))
		}
		for at := range int64(len(file)) {
			if at%3 != 0 && (testing.Short() || c.want != errBroken) || at%7 != 0 && testing.Short() {
				continue
			}
			r := &readerAt{file, -1, c.wrong}
			whole, err := OpenReaderAt(r, int64(len(file)), OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r = &readerAt{file, at, c.wrong}
			got, err := OpenReaderAt(r, int64(len(file)), OpenOptions{})
			if works != (err == nil) && uint64(at) < l.buckets || err != nil && !fails(err) {
				t.Errorf("%s at %d: OpenReaderAt: %v", name, at, err)
			}
			if got == nil {
				// What fails after opening fails the same.
				whole.file.source = r
				got = whole
			}
			met := 0
			for i := range asked {
				a := &asked[i]
				r, o, err := got.LookupOrdinal(a.item)
				if err != nil && (works || !fails(err)) || err == nil && (r != a.r || o != a.ordinal) {
					t.Errorf("%s at %d: %q: %+v, %v", name, at, a.item, r, err)
				}
				if err != nil {
					met++
				}
			}
			if !works && uint64(at) >= l.buckets && met == 0 && len(records(got)) == 60 {
				t.Errorf("%s at %d: no lookup and no record meets it", name, at)
			}
			if works && at%21 != 0 {
				continue
			}
			if works {
				if err := got.Verify(); err != nil {
					t.Errorf("%s at %d: Verify: %v", name, at, err)
				}
				continue
			}
			if at%21 == 0 {
				if err := got.Verify(); !fails(err) {
					t.Errorf("%s at %d: Verify: %v", name, at, err)
				}
			}
			inSection := uint64(at) >= headerSize && uint64(at) < headerSize+l.filter || uint64(at) >= l.index && uint64(at) < l.index+l.indexLen || uint64(at) >= l.buckets
			var out bytes.Buffer
			n, err := got.WriteTo(&out)
			if n != int64(out.Len()) || inSection && (!fails(err) || n > at) || !inSection && err != nil {
				t.Errorf("%s at %d: WriteTo: %d bytes, counted %d, %v", name, at, out.Len(), n, err)
			}
		}
	}
}

// A batch that meets damage names the item that met it, and the results before
// that are good, through a reader and through a mapping.
func TestBatchOfDamaged(t *testing.T) {
	const n = 2000
	s := mustNew(t, Config{}, slices.Collect(numbered("member", n))...)
	file := asFile(t, s)
	var items [][]byte
	for i := range 700 { // members and, rarely "maybe", others
		items = append(items, fmt.Appendf(nil, "%-12s%012d", []string{"member", "absent"}[i%2], i))
	}
	for _, at := range []int{0, 2, 254, 256, 300, 698} {
		h, _ := parseHeader(file)
		l, _ := h.layout()
		bucket := s.set.bucket(s.set.scheme.digest(items[at]))
		damaged := slices.Clone(file)
		damaged[l.buckets+s.set.offset(bucket)] ^= 4
		path := tempFile(t, damaged)
		for _, way := range []string{"Open", "Open mapped", "OpenReaderAt"} {
			got, err := snapshotWays[way](path, damaged, OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			first := 0 // another one may be in the bucket
			for ; first < at; first++ {
				if _, err := got.Lookup(items[first]); err != nil {
					break
				}
			}
			results := make([]Result, len(items))
			for i := range results {
				results[i] = Result{true, true, true}
			}
			err = got.LookupBatch(items, results)
			if !isOnly(err, ErrCorrupt) || !strings.HasSuffix(err.Error(), fmt.Sprintf("(item %d of the batch)", first)) {
				t.Errorf("%s, item %d: %v", way, first, err)
			}
			for i, r := range results[:first] {
				if want := lookup(t, s, items[i]); r != want {
					t.Errorf("%s, item %d: %+v, want %+v", way, i, r, want)
				}
			}
		}
	}
}

// A hole is a reader of size bytes that are zero, but for some.
type hole struct {
	size int64
	at   map[int64][]byte
}

func (h *hole) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for at, b := range h.at {
		if from := at - off; from < 0 && from+int64(len(b)) > 0 {
			copy(p, b[-from:])
		} else if from >= 0 && from < int64(len(p)) {
			copy(p[from:], b)
		}
	}
	return len(p), nil
}

// forgeGiant is a file of holes with the record item and, in the same bucket,
// more records of zeros, each of so many. Its head, filter and index are right.
func forgeGiant(t *testing.T, item []byte, more int, each uint32) *hole {
	t.Helper()
	n := uint64(1 + more)
	f := &Filter{scheme: newScheme(Config{}), m: 512, k: 1, n: n, bits: bytes.Repeat([]byte{0xff}, 64)}
	f.digest = sectionDigest(f.bits)
	set := newFrozenSet(n)
	set.scheme = f.scheme
	w := set.scheme.digest(item)
	target := set.bucket(w)
	for b := range set.buckets {
		set.index = binary.LittleEndian.AppendUint64(set.index, set.size)
		if b == target {
			set.size += set.headSize(n, 2) + uint64(len(item)) + uint64(more)*uint64(each)
		} else {
			set.size += set.headSize(0, 0)
		}
	}
	set.index = binary.LittleEndian.AppendUint64(set.index, set.size)
	h := f.header(kindSnapshot)
	h.index, h.setBytes = sectionDigest(set.index), set.size
	set.salt = h.salt()
	head := binary.LittleEndian.AppendUint64([]byte{2 | escaped<<2}, n)
	head = append(head, make([]byte, set.width+4)...)
	head = append(head, bytes.Repeat([]byte{tag(w)}, int(n))...)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(item)))
	for range more {
		head = binary.LittleEndian.AppendUint32(head, each)
	}
	head = binary.LittleEndian.AppendUint32(head, set.headCheck(target, head))
	l, ok := h.layout()
	if !ok {
		t.Fatal("no such file")
	}
	return &hole{int64(l.total), map[int64][]byte{
		0: h.append(nil), headerSize: f.bits, int64(l.index): set.index,
		int64(l.checks):                       appendChecks(appendChecks(nil, f.bits), set.index),
		int64(l.buckets + set.offset(target)): head,
	}}
}

// A bucket of a file gets no more memory than OpenOptions allow, however large
// its head says that it is.
func TestGiantBucket(t *testing.T) {
	item := []byte("hello")
	for _, c := range []struct {
		more int
		each uint32
	}{{100, 3 << 20}, {70_000, math.MaxInt32}} {
		file := forgeGiant(t, item, c.more, c.each)
		s, err := OpenReaderAt(file, file.size, OpenOptions{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		got := allocated(func() {
			_, err1 := s.Lookup(item)
			_, err2 := s.Explain(item)
			err3 := s.LookupBatch([][]byte{item}, make([]Result, 1))
			_, err4 := s.bucketRecords(s.set.bucket(s.set.scheme.digest(item)))
			for i, err := range []error{err1, err2, err3, err4} {
				if !isOnly(err, ErrTooLarge) || !strings.Contains(err.Error(), "MaxMemory is 1048576") {
					t.Errorf("%d more records of %d bytes: call %d: %v", c.more, c.each, i, err)
				}
			}
		})
		if got > 8<<20 {
			t.Errorf("%d more records of %d bytes: %d bytes allocated", c.more, c.each, got)
		}
	}
}

// A fickle reader answers every other read of what it has at some place with
// other bytes.
type fickle struct {
	io.ReaderAt
	at, reads int64
}

func (f *fickle) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, off)
	if i := f.at - off; i >= 0 && i < int64(n) {
		if f.reads++; f.reads%2 == 0 {
			for ; i < int64(n); i += 7 {
				p[i] ^= byte(f.reads)
			}
		}
	}
	return n, err
}

// What a reader says anew is not believed for what it said before: errors, or
// right answers, also for heads that take two reads, and no panic.
func TestFickleReader(t *testing.T) {
	s := mustNew(t, Config{}, varied(60)...)
	file := asFile(t, s)
	giant := forgeGiant(t, []byte("hello"), 2000, 3)
	l, _ := s.headerOf().layout()
	for at := l.buckets; at < uint64(len(file)); at += 5 {
		for first := range int64(2) {
			r := &fickle{bytes.NewReader(file), int64(at), first}
			got, err := OpenReaderAt(r, int64(len(file)), OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range varied(90) {
				want := lookup(t, s, item)
				if r, err := got.Lookup(item); err != nil && !isOnly(err, ErrCorrupt) || err == nil && r != want {
					t.Errorf("byte %d: %q: %+v, %v", at, item, r, err)
				}
			}
			if err := got.Verify(); err != nil && !isOnly(err, ErrCorrupt) {
				t.Errorf("byte %d: %v", at, err)
			}
		}
	}
	for at := range giant.at {
		for i := range giant.at[at] {
			if i%101 != 0 {
				continue
			}
			for first := range int64(2) {
				got, err := OpenReaderAt(&fickle{giant, at + int64(i), first}, giant.size, OpenOptions{})
				if err != nil {
					continue
				}
				if _, err := got.Lookup([]byte("hello")); !isOnly(err, ErrCorrupt) {
					t.Errorf("byte %d: %v", at+int64(i), err)
				}
			}
		}
	}
}

// All that a reader can say of a read. One that breaks the rules is not taken
// for a file that is damaged.
func TestReadFullAt(t *testing.T) {
	for _, c := range []struct {
		n    int
		err  error
		want error // of this package; nil: none
		fine bool
	}{
		{8, nil, nil, true}, {8, io.EOF, nil, true}, {8, errBroken, nil, true},
		{7, nil, ErrCorrupt, false}, {0, io.EOF, ErrCorrupt, false}, {7, io.ErrUnexpectedEOF, ErrCorrupt, false},
		{7, errBroken, nil, false}, {9, nil, nil, false}, {-1, nil, nil, false}, {-1, io.EOF, nil, false}, {9, errBroken, nil, false},
	} {
		r := &readerAt{make([]byte, 8), 0, func(int) (int, error) { return c.n, c.err }}
		if err := readFullAt(r, make([]byte, 8), 0); (err == nil) != c.fine || !isOnly(err, c.want) {
			t.Errorf("%d of 8 bytes, %v: %v", c.n, c.err, err)
		}
	}
}

// A limitedWriter takes so many bytes and then fails with err, or, if that is
// nil, takes less than it is given.
type limitedWriter struct {
	left int
	err  error
	n    int64
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(w.left, len(p))
	w.left -= n
	w.n += int64(n)
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

// A writer that fails, or writes short, at any offset: its error, and the
// exact count of what it took.
func TestFailingWriters(t *testing.T) {
	s := mustNew(t, Config{}, varied(100)...)
	file := asFile(t, s)
	path, alone := saved(t, s), saved(t, filterOf(t, s))
	opened, err1 := OpenReaderAt(bytes.NewReader(file), int64(len(file)), OpenOptions{})
	mapped, err2 := Open(path, OpenOptions{Mapped: true})
	filter, err3 := OpenFilter(alone, OpenOptions{Mapped: true})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]io.WriterTo{"built": s, "OpenReaderAt": opened, "Open mapped": mapped, "filter": filterOf(t, s), "mapped filter": filter} {
		size := len(asFile(t, from))
		for n := range size + 1 {
			for _, err := range []error{errBroken, nil} {
				w := &limitedWriter{left: n, err: err}
				want := err
				if err == nil {
					want = io.ErrShortWrite
				}
				got, gotErr := from.WriteTo(w)
				if got != int64(n) || w.n != int64(n) || n < size && !errors.Is(gotErr, want) || n == size && gotErr != nil {
					t.Fatalf("%s: limit %d of %d: %d bytes, counted %d, %v", name, n, size, w.n, got, gotErr)
				}
			}
		}
	}
}

// records are what comes before the first error.
func records(s *Snapshot) (all [][]byte) {
	for r, err := range s.Records() {
		if err != nil {
			break
		}
		all = append(all, r)
	}
	return all
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Readers and writers that break the rules get errors, and their panics are
// the caller's to recover, whatever goroutine they happen in.
func TestUnrulyReaders(t *testing.T) {
	s := mustNew(t, Config{}, "a", "b")
	file := asFile(t, s)
	for _, n := range []int{-1, 1 << 20, 0} {
		_, err := Read(readerFunc(func([]byte) (int, error) { return n, nil }), OpenOptions{})
		if err == nil || n == 0 && !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("%d read: %v", n, err)
		}
	}
	if n, err := s.WriteTo(writerFunc(func(p []byte) (int, error) { return len(p) + 1, nil })); err == nil || n > int64(len(file)) {
		t.Errorf("%d written, %v", n, err)
	}
	for _, from := range []io.WriterTo{s, filterOf(t, s)} {
		if n, err := from.WriteTo(nil); n != 0 || !isOnly(err, ErrConfig) {
			t.Errorf("%T: to nobody: %d, %v", from, n, err)
		}
	}
	at := &readerAt{file, -1, func(int) (int, error) { panic("unruly") }}
	opened, err := OpenReaderAt(at, int64(len(file)), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at.at = int64(len(file) - 1)
	defer func() {
		if p := recover(); p != "unruly" {
			t.Errorf("recovered %v", p)
		}
	}()
	opened.Verify()
	t.Error("no panic")
}

// FuzzRead: any bytes, as they are or with every checksum made to fit. What
// Read accepts has one form and is what Verify accepts behind a reader; what
// is only opened never panics and never takes for a record what is none.
func FuzzRead(f *testing.F) {
	key := []byte("0123456789abcdef")
	seeds := 0
	for _, c := range samples(f) {
		for _, forged := range []bool{false, true} {
			f.Add(c.file, forged)
			seeds++
		}
		for _, at := range []int{12, 20, 28, headerSize, len(c.file) / 2, len(c.file) - 20, len(c.file) - 1} {
			b := slices.Clone(c.file)
			b[at] ^= 0x11
			f.Add(b, true)
			seeds++
		}
		f.Add(c.file[:len(c.file)/2], true)
		seeds++
	}
	if seeds != 260 {
		f.Errorf("%d seeds, want 260", seeds)
	}
	f.Fuzz(func(t *testing.T, b []byte, forged bool) {
		if len(b) > 1<<16 {
			return
		}
		o := OpenOptions{MaxMemory: 1 << 24}
		if len(b) > 15 && b[15]&flagKeyed != 0 {
			o.Key = key
		}
		if forged {
			b = reseal(b, key)
		}
		fuzzFilter(t, b, o)
		read, errRead := Read(bytes.NewReader(b), o)
		if errRead == nil {
			again := asFile(t, read)
			if !bytes.HasPrefix(b, again) {
				t.Fatalf("read and written, %x\nis %x", b, again)
			}
			b = b[:len(again)]
			if err := read.Verify(); err != nil {
				t.Errorf("what Read accepts Verify does not: %v", err)
			}
		} else if !errors.Is(errRead, ErrCorrupt) && !errors.Is(errRead, ErrVersion) && !errors.Is(errRead, ErrKey) && !errors.Is(errRead, ErrTooLarge) {
			t.Errorf("Read: %v", errRead)
		}
		opened, err := OpenReaderAt(bytes.NewReader(b), int64(len(b)), o)
		if err != nil {
			if errRead == nil {
				t.Errorf("Read accepts, OpenReaderAt: %v", err)
			}
			return
		}
		if err := opened.Verify(); (err == nil) != (errRead == nil) {
			t.Errorf("Read: %v; Verify: %v", errRead, err)
		}
		// As Open has it, too, without a file: the buckets as one slice.
		l, _ := opened.headerOf().layout()
		asMapped := *opened
		asMapped.set.data = b[l.buckets:l.total:l.total]
		items := append(records(opened), eightBytes(40)...)
		items = append(items, nil, []byte("absent"))
		for _, item := range items {
			r, ordinal, err := opened.LookupOrdinal(item)
			rMapped, ordinalMapped, errMapped := asMapped.LookupOrdinal(item)
			if r != rMapped || ordinal != ordinalMapped || (err == nil) != (errMapped == nil) {
				t.Errorf("%q: %+v, %d, %v; mapped %+v, %d, %v", item, r, ordinal, err, rMapped, ordinalMapped, errMapped)
			}
			if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrItem) {
				t.Errorf("%q: %v", item, err)
			}
			if r.Duplicate && (!bytes.Contains(b[l.buckets:], item) || ordinal >= opened.Len()) {
				t.Errorf("%q is in no bucket, or has ordinal %d of %d", item, ordinal, opened.Len())
			}
			if errRead == nil {
				rRead, ordinalRead, errRead := read.LookupOrdinal(item)
				if r != rRead || ordinal != ordinalRead || (err == nil) != (errRead == nil) {
					t.Errorf("%q: %+v, %d, %v; read %+v, %d, %v", item, r, ordinal, err, rRead, ordinalRead, errRead)
				}
			}
		}
		if !slices.EqualFunc(records(opened), records(&asMapped), bytes.Equal) {
			t.Error("other records, mapped")
		}
	})
}

func fuzzFilter(t *testing.T, b []byte, o OpenOptions) {
	f, err := ReadFilter(bytes.NewReader(b), o)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrKey) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("ReadFilter: %v", err)
		}
		return
	}
	if again := asFile(t, f); !bytes.HasPrefix(b, again) {
		t.Fatalf("filter: read and written, %x\nis %x", b, again)
	}
	for _, item := range eightBytes(10) {
		if _, err := f.MaybePresent(item); err != nil {
			t.Errorf("%q: %v", item, err)
		}
	}
}
