package bloom

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/iotest"
)

// sameSnapshot checks that got is want in all that can be asked of it.
func sameSnapshot(t *testing.T, got, want *Snapshot, items [][]byte, verify bool) {
	t.Helper()
	gotID, err1 := got.Identity()
	wantID, err2 := want.Identity()
	if gotID != wantID || err1 != nil || err2 != nil {
		t.Errorf("identity %x, want %x, %v, %v", gotID, wantID, err1, err2)
	}
	gotStats, err1 := got.Stats()
	wantStats, err2 := want.Stats()
	if gotStats != wantStats || err1 != nil || err2 != nil {
		t.Errorf("stats %v, want %v, %v, %v", gotStats, wantStats, err1, err2)
	}
	if !bytes.Equal(got.PackedBits(), want.PackedBits()) || got.Len() != want.Len() || got.String() != want.String() {
		t.Errorf("%v, %v: other bits, length or description", got, want)
	}
	results := make([]Result, len(items))
	if err := got.LookupBatch(items, results); err != nil {
		t.Error(err)
	}
	maybes := make([]bool, len(items))
	if err := got.MaybePresentBatch(items, maybes); err != nil {
		t.Error(err)
	}
	for i, item := range items {
		r := lookup(t, want, item)
		_, o, _ := want.LookupOrdinal(item)
		if gotR, gotO, err := got.LookupOrdinal(item); lookup(t, got, item) != r || gotR != r || gotO != o || results[i] != r || maybes[i] != r.MaybePresent || err != nil {
			t.Errorf("item of %d bytes: %+v, ordinal %d, %v; want %+v, %d", len(item), gotR, gotO, err, r, o)
		}
		d, err := want.Digest(item)
		if err == nil {
			if gotR, err := got.LookupDigest(d, item); gotR != r || err != nil {
				t.Errorf("item of %d bytes: by digest %+v, %v; want %+v", len(item), gotR, err, r)
			}
		} else if want.filter.scheme.derive == deriveBlock {
			t.Error(err)
		}
	}
	var records [][]byte
	for r, err := range want.Records() {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	i := 0
	for r, err := range got.Records() {
		if err != nil || i == len(records) || !bytes.Equal(r, records[i]) {
			t.Fatalf("record %d: %d bytes, %v", i, len(r), err)
		}
		i++
	}
	if i != len(records) {
		t.Errorf("%d records, want %d", i, len(records))
	}
	if !bytes.Equal(asFile(t, got), asFile(t, want)) {
		t.Error("written again, the file is another")
	}
	if verify {
		if err := got.Verify(); err != nil {
			t.Errorf("Verify: %v", err)
		}
	}
}

// saved is where a snapshot or a filter was saved.
func saved(t *testing.T, s interface{ Save(string) error }) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkRoundTrip sends a snapshot and its filter through every way of writing
// and opening.
func checkRoundTrip(t *testing.T, cfg Config, records, items [][]byte, verify bool) {
	t.Helper()
	s := mustNew(t, cfg, records...)
	file, key := asFile(t, s), OpenOptions{Key: cfg.Key}
	path := saved(t, s)
	if disk, err := os.ReadFile(path); err != nil || !bytes.Equal(disk, file) {
		t.Errorf("Save and WriteTo differ, %v", err)
	}
	for way, open := range snapshotWays {
		t.Run(way, func(t *testing.T) {
			got, err := open(path, file, key)
			if err != nil {
				t.Fatal(err)
			}
			if way == "Read" && cap(filterOf(t, got).bits) > len(got.filter.bits)+slack {
				t.Error("the filter holds on to the records")
			}
			sameSnapshot(t, got, s, items, verify)
			if again, err := os.ReadFile(saved(t, got)); err != nil || !bytes.Equal(again, file) {
				t.Errorf("saved again, the file is another, %v", err)
			}
			f := filterOf(t, got)
			if !bytes.Equal(asFile(t, f), asFile(t, filterOf(t, s))) {
				t.Error("its filter is written as another")
			}
			if err := f.Verify(); err != nil {
				t.Errorf("its filter: %v", err)
			}
		})
	}

	f := filterOf(t, s)
	file, path = asFile(t, f), saved(t, f)
	if disk, err := os.ReadFile(path); err != nil || !bytes.Equal(disk, file) {
		t.Errorf("filter: Save and WriteTo differ, %v", err)
	}
	for way, open := range filterWays {
		t.Run(way, func(t *testing.T) {
			got, err := open(path, file, key)
			if err != nil {
				t.Fatal(err)
			}
			sameFilter(t, got, f, items)
		})
	}
}

func sameFilter(t *testing.T, got, want *Filter, items [][]byte) {
	t.Helper()
	gotID, err1 := got.Identity()
	wantID, err2 := want.Identity()
	gotStats, err3 := got.Stats()
	wantStats, err4 := want.Stats()
	if err := errors.Join(err1, err2, err3, err4, got.Verify()); err != nil || gotID != wantID || gotStats != wantStats || got.String() != want.String() {
		t.Errorf("%x, %v, want %x, %v, %v", gotID, gotStats, wantID, wantStats, err)
	}
	if !bytes.Equal(got.PackedBits(), want.PackedBits()) || !bytes.Equal(asFile(t, got), asFile(t, want)) {
		t.Error("other bits, or written again another file")
	}
	maybes := make([]bool, len(items))
	if err := got.MaybePresentBatch(items, maybes); err != nil {
		t.Error(err)
	}
	for i, item := range items {
		gotMaybe, err1 := got.MaybePresent(item)
		wantMaybe, err2 := want.MaybePresent(item)
		if gotMaybe != wantMaybe || maybes[i] != wantMaybe || err1 != nil || err2 != nil {
			t.Errorf("item of %d bytes: %t, want %t, %v, %v", len(item), gotMaybe, wantMaybe, err1, err2)
		}
		if d, err := want.Digest(item); err == nil {
			if maybe, err := got.MaybePresentDigest(d); maybe != wantMaybe || err != nil {
				t.Errorf("item of %d bytes: by digest %t, %v", len(item), maybe, err)
			}
		}
	}
	if again, err := os.ReadFile(saved(t, got)); err != nil || !bytes.Equal(again, asFile(t, want)) {
		t.Errorf("saved again, the file is another, %v", err)
	}
}

// A snapshot that went through a file is the same snapshot, whatever way it
// was written and opened; so is a filter.
func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		cfg Config
		n   []int
	}{
		{Config{}, []int{9, 0, 1, 8, 255, 256, 2000}},
		{Config{Seed: repeat(32), FPRate: 1e-6}, []int{100}},
		{Config{Bits: 512, Hashes: 14}, []int{600}},
		{Config{Bits: 512 * 40_000, Hashes: 14}, []int{100}}, // a filter of three chunks
		{Config{Protocol: BLAKE2b}, []int{100, 0}},
		{Config{Protocol: BLAKE2b, Seed: []byte("s"), Key: repeat(16)}, []int{0, 20}},
		{Config{Protocol: BLAKE2b, Key: repeat(64)}, []int{100}},
		{Config{Protocol: DocMembershipV1}, []int{40, 0, 1}},
		{Config{Protocol: DocMembershipV1, Bits: 509, Hashes: 8, Seed: repeat(16)}, []int{64}},
		{Config{Protocol: ESBloomV1}, []int{100, 0}},
		{Config{Protocol: ESBloomV1, Bits: 1, Hashes: 16}, []int{0, 3}},
		{Config{Protocol: KeyIndexV1}, []int{100, 0}},
		{Config{Protocol: KeyIndexV1, Bits: 1001, Hashes: 256}, []int{10}},
	} {
		if testing.Short() {
			if c.n = c.n[:1]; raceEnabled && c.cfg.Bits > 1<<20 {
				continue
			}
		}
		for _, n := range c.n {
			t.Run(fmt.Sprintf("%v of %d", c.cfg, n), func(t *testing.T) {
				items := eightBytes(min(n, 200))
				for i := range 200 {
					items = append(items, fmt.Appendf(nil, "no%06d", i))
				}
				checkRoundTrip(t, c.cfg, eightBytes(n), items, n <= 256)
			})
		}
	}
}

// Records of very different lengths, one of 1 MiB among them.
func TestRoundTripOfMixedLengths(t *testing.T) {
	records, others := mixed()
	checkRoundTrip(t, Config{}, records, append(records, others...), false)
	if err := mustNew(t, Config{}, records...).Verify(); err != nil {
		t.Error(err)
	}
}

// A record of 64 MiB beside one of no bytes.
func TestRoundTripOfLongRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("moves gigabytes")
	}
	long := bytes.Repeat([]byte("0123456789abcdef"), 4<<20)
	records := [][]byte{nil, long}
	s := mustNew(t, Config{}, records...)
	path := saved(t, s)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := s.Identity()
	other := slices.Clone(long)
	other[len(other)-1]++
	for name, open := range snapshotWays {
		got, err := open(path, file, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := got.Identity()
		if id != want || err != nil {
			t.Errorf("%s: %x, %v", name, id, err)
		}
		for item, want := range map[*[]byte]bool{&records[0]: true, &records[1]: true, &other: false} {
			if r, err := got.Lookup(*item); r.Duplicate != want || err != nil {
				t.Errorf("%s: %d bytes: %+v, %v", name, len(*item), r, err)
			}
		}
		lengths := 0
		for r, err := range got.Records() {
			if err != nil || len(r) > 0 && !bytes.Equal(r, long) {
				t.Errorf("%s: record of %d bytes, %v", name, len(r), err)
			}
			lengths += len(r)
		}
		sum := &matcher{want: file}
		if n, err := got.WriteTo(sum); err != nil || n != int64(len(file)) || sum.bad || lengths != len(long) {
			t.Errorf("%s: written again: %d bytes, %v, another: %t; %d bytes of records", name, n, err, sum.bad, lengths)
		}
	}
}

// A matcher is a writer that compares.
type matcher struct {
	want []byte
	at   int
	bad  bool
}

func (m *matcher) Write(p []byte) (int, error) {
	m.bad = m.bad || len(p) > len(m.want)-m.at || !bytes.Equal(p, m.want[m.at:m.at+len(p)])
	m.at += len(p)
	return len(p), nil
}

// An index of more than one chunk.
func TestRoundTripOfManyRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a million records")
	}
	const n = 1_100_000
	s, err := New(Config{}, func(yield func([]byte) bool) {
		b := make([]byte, 8)
		for i := range uint64(n) {
			binary.BigEndian.PutUint64(b, i)
			if !yield(b) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	file := asFile(t, s)
	path := saved(t, s)
	want, _ := s.Identity()
	for _, o := range []OpenOptions{{}, {Mapped: true}} {
		got, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		id, err := got.Identity()
		if id != want || err != nil || !bytes.Equal(got.PackedBits(), s.PackedBits()) {
			t.Errorf("%v: %x, %v", o, id, err)
		}
		for i := range uint64(n) {
			if i%101 != 0 {
				continue
			}
			item := binary.BigEndian.AppendUint64(nil, i)
			r, ordinal, err := got.LookupOrdinal(item)
			_, want, _ := s.LookupOrdinal(item)
			if !r.Duplicate || ordinal != want || err != nil {
				t.Fatalf("%v: %d: %+v, %d, %v", o, i, r, ordinal, err)
			}
		}
		sum := &matcher{want: file}
		if n, err := got.WriteTo(sum); n != int64(len(file)) || err != nil || sum.bad {
			t.Errorf("%v: written again: %d bytes, %v, another: %t", o, n, err, sum.bad)
		}
	}
	// A flip in the last chunk of filter and index is refused.
	h, _ := parseHeader(file)
	l, _ := h.layout()
	for _, at := range []uint64{headerSize + l.filter - 1, l.index + l.indexLen - 1} {
		file[at] ^= 1
		if _, err := OpenReaderAt(bytes.NewReader(file), int64(len(file)), OpenOptions{}); !isOnly(err, ErrCorrupt) {
			t.Errorf("byte %d: %v", at, err)
		}
		file[at] ^= 1
	}
}

// Anything that reads at offsets holds a snapshot: a file of an fs.FS such as
// an embed.FS, a part of a larger file, an entry stored in a zip.
func TestOpenReaderAtHomes(t *testing.T) {
	records := varied(300)
	s := mustNew(t, Config{}, records...)
	file := asFile(t, s)
	size := int64(len(file))

	var memory fs.FS = fstest.MapFS{"data/set.bloom": {Data: file}}
	embedded, err := memory.Open("data/set.bloom")
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	info, err := embedded.Stat()
	if err != nil || info.Size() != size {
		t.Fatal(info, err)
	}

	larger := slices.Concat(repeat(1001), file, repeat(77))
	disk, err := os.Open(tempFile(t, larger))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()

	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, name := range []string{"before", "set.bloom", "after"} {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if content := map[string][]byte{"set.bloom": file}[name]; content == nil {
			_, err = entry.Write(repeat(500))
		} else {
			_, err = entry.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	zipped, err := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	if err != nil {
		t.Fatal(err)
	}
	offset, err := zipped.File[1].DataOffset()
	if err != nil {
		t.Fatal(err)
	}

	for name, r := range map[string]io.ReaderAt{
		"fs.FS":       embedded.(io.ReaderAt),
		"part":        io.NewSectionReader(disk, 1001, size),
		"zip":         io.NewSectionReader(bytes.NewReader(archive.Bytes()), offset, int64(zipped.File[1].UncompressedSize64)),
		"larger than": bytes.NewReader(larger[1001:]), // size says where it ends
		"strings":     strings.NewReader(string(file)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := OpenReaderAt(r, size, OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sameSnapshot(t, got, s, append(records, varied(600)[300:]...), true)
		})
	}
	for _, size := range []int64{-1, -1 << 63} {
		if _, err := OpenReaderAt(bytes.NewReader(file), size, OpenOptions{}); !isOnly(err, ErrCorrupt) {
			t.Errorf("size %d: %v", size, err)
		}
	}
	if _, err := OpenReaderAt(nil, size, OpenOptions{}); !isOnly(err, ErrConfig) {
		t.Errorf("nil reader: %v", err)
	}
	if _, err := Read(nil, OpenOptions{}); !isOnly(err, ErrConfig) {
		t.Errorf("nil reader: %v", err)
	}
}

// Snapshots and filters one after the other in one stream: each Read leaves
// what follows unread, to the byte.
func TestReadLeavesTheRest(t *testing.T) {
	var all bytes.Buffer
	var files [][]byte
	cfg := Config{Protocol: BLAKE2b, Key: repeat(16)}
	for _, n := range []int{0, 1, 500} {
		s := mustNew(t, cfg, eightBytes(n)...)
		files = append(files, asFile(t, s), asFile(t, filterOf(t, s)))
	}
	all.WriteString("before")
	for _, f := range files {
		all.Write(f)
	}
	all.WriteString("after")
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with EOF": iotest.DataErrReader,
	} {
		r := wrap(bytes.NewReader(all.Bytes()))
		rest := func(want string) {
			t.Helper()
			b := make([]byte, len(want))
			if _, err := io.ReadFull(r, b); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v, want %q", name, b, err, want)
			}
		}
		rest("before")
		for i, file := range files {
			var got io.WriterTo
			var err error
			if i%2 == 0 {
				got, err = Read(r, OpenOptions{Key: cfg.Key})
			} else {
				got, err = ReadFilter(r, OpenOptions{Key: cfg.Key})
			}
			if err != nil || !bytes.Equal(asFile(t, got), file) {
				t.Fatalf("%s: file %d: %v", name, i, err)
			}
		}
		rest("after")
		if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("%s: %d bytes more, %v", name, n, err)
		}
	}
}

// MaxMemory is a limit, and ErrTooLarge says that it is passed.
func TestMaxMemory(t *testing.T) {
	s := mustNew(t, Config{}, eightBytes(1000)...)
	file := asFile(t, s)
	path, alone := saved(t, s), saved(t, filterOf(t, s))
	h, _ := parseHeader(file)
	l, _ := h.layout()
	held := l.filter + l.indexLen + l.checksLen
	for _, c := range []struct {
		name  string
		least uint64
		open  func(o OpenOptions) error
	}{
		{"Read", l.total, func(o OpenOptions) error { _, err := Read(bytes.NewReader(file), o); return err }},
		{"OpenReaderAt", held, func(o OpenOptions) error {
			_, err := OpenReaderAt(bytes.NewReader(file), int64(len(file)), o)
			return err
		}},
		{"Open", held, func(o OpenOptions) error { _, err := Open(path, o); return err }},
		{"OpenFilter", l.filter + 4, func(o OpenOptions) error { _, err := OpenFilter(alone, o); return err }},
		{"ReadFilter", uint64(len(asFile(t, filterOf(t, s)))), func(o OpenOptions) error {
			_, err := ReadFilter(bytes.NewReader(asFile(t, filterOf(t, s))), o)
			return err
		}},
	} {
		for _, most := range []uint64{0, c.least, c.least + 1, 1 << 40} {
			if err := c.open(OpenOptions{MaxMemory: most}); err != nil {
				t.Errorf("%s in %d bytes: %v", c.name, most, err)
			}
		}
		for _, most := range []uint64{1, c.least - 1} {
			if err := c.open(OpenOptions{MaxMemory: most}); !isOnly(err, ErrTooLarge) {
				t.Errorf("%s in %d bytes: %v", c.name, most, err)
			}
		}
	}
	if _, err := Open(path, OpenOptions{MaxMemory: 1, Mapped: true}); mappable && err != nil {
		t.Errorf("mapped: %v", err)
	}
}

// A counter counts reads.
type counter struct {
	io.ReaderAt
	reads, bytes atomic.Int64
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	c.reads.Add(1)
	c.bytes.Add(int64(len(p)))
	return c.ReaderAt.ReadAt(p, off)
}

// Behind a reader, an absent item costs nothing, or one read if the filter
// takes it for a member; a member costs at most two.
func TestReadsOfLookups(t *testing.T) {
	const n = 100_000
	s, err := New(Config{}, numbered("member", n))
	if err != nil {
		t.Fatal(err)
	}
	file := asFile(t, s)
	c := &counter{ReaderAt: bytes.NewReader(file)}
	got, err := OpenReaderAt(c, int64(len(file)), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	absent := 1_000_000
	if testing.Short() {
		absent /= 10
	}
	c.reads.Store(0)
	c.bytes.Store(0)
	maybes, more := int64(0), 0
	for item := range numbered("absent", absent) {
		before := c.reads.Load()
		r, err := got.Lookup(item)
		if err != nil || r.Duplicate {
			t.Fatalf("%s: %+v, %v", item, r, err)
		}
		reads := c.reads.Load() - before
		if !r.MaybePresent && reads != 0 || r.MaybePresent && (reads < 1 || reads > 2) {
			t.Fatalf("%s: %+v for %d reads", item, r, reads)
		}
		if r.MaybePresent {
			maybes++
		}
		if reads > 1 {
			more++
		}
	}
	if limit := int64(absent) / 50; maybes == 0 || maybes > limit || int64(more) > maybes/50 {
		t.Errorf("%d of %d absent items cost a read, %d of them two", maybes, absent, more)
	}
	t.Logf("%d absent items: %d false positives, %d reads of %d bytes", absent, maybes, c.reads.Load(), c.bytes.Load())
	for item := range numbered("member", n) {
		before := c.reads.Load()
		r, err := got.Lookup(item)
		if reads := c.reads.Load() - before; err != nil || !r.Duplicate || reads < 1 || reads > 2 {
			t.Fatalf("%s: %+v, %v, %d reads", item, r, err, reads)
		}
	}
	// Long records: the head is one read, the records another.
	long := mustNew(t, Config{}, slices.Collect(func(yield func([]byte) bool) {
		for i := range 50 {
			if !yield(append(repeat(3000), byte(i))) {
				return
			}
		}
	})...)
	file = asFile(t, long)
	c = &counter{ReaderAt: bytes.NewReader(file)}
	if got, err = OpenReaderAt(c, int64(len(file)), OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		before := c.reads.Load()
		r, err := got.Lookup(append(repeat(3000), byte(i)))
		if reads := c.reads.Load() - before; err != nil || !r.Duplicate || reads > 2 {
			t.Errorf("%d: %+v, %v, %d reads", i, r, err, reads)
		}
	}
	// And where no record has the tag, of an absent one the head is enough.
	maybes, more = 0, 0
	for i := range 20_000 {
		before := c.reads.Load()
		r, err := got.Lookup(fmt.Appendf(nil, "%03001d", i))
		if reads := c.reads.Load() - before; err != nil || r.Duplicate || reads > 2 {
			t.Fatalf("%d: %+v, %v, %d reads", i, r, err, reads)
		} else if reads == 2 {
			more++
		}
		if r.MaybePresent {
			maybes++
		}
	}
	if maybes < 20 || int64(more) > maybes/4 {
		t.Errorf("of %d absent items that the filter admits, %d cost two reads", maybes, more)
	}
}

// After Close every method answers with ErrClosed; the filter that was handed
// out goes on, and so does every other snapshot of the file.
func TestClose(t *testing.T) {
	items := varied(50)
	file := asFile(t, mustNew(t, Config{}, items...))
	path := tempFile(t, file)
	ways := maps.Clone(snapshotWays)
	ways["built"] = func(string, []byte, OpenOptions) (*Snapshot, error) { return New(Config{}, slices.Values(items)) }
	for name, open := range ways {
		s, err1 := open(path, file, OpenOptions{})
		other, err2 := open(path, file, OpenOptions{})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		f := filterOf(t, s)
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
		for what, err := range everyCall(t, s, items[0]) {
			if !isOnly(err, ErrClosed) {
				t.Errorf("%s: %s after Close: %v", name, what, err)
			}
		}
		if s.Len() != 0 || s.PackedBits() != nil {
			t.Errorf("%s: %d records, %x after Close", name, s.Len(), s.PackedBits())
		}
		for what, err := range everyCall(t, other, items[0]) {
			if err != nil {
				t.Errorf("%s: %s of another: %v", name, what, err)
			}
		}
		if maybe, err := f.MaybePresent(items[0]); !maybe || err != nil || f.Verify() != nil {
			t.Errorf("%s: its filter: %t, %v", name, maybe, err)
		}
	}
	for _, s := range []*Snapshot{nil, {}} {
		if err := s.Close(); !isOnly(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// everyCall calls all that can fail, and yields what and how.
func everyCall(t *testing.T, s *Snapshot, item []byte) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["Lookup"] = s.Lookup(item)
	_, errs["LookupString"] = s.LookupString(string(item))
	errs["LookupBatch"] = s.LookupBatch([][]byte{item}, make([]Result, 1))
	_, _, errs["LookupOrdinal"] = s.LookupOrdinal(item)
	errs["MaybePresentBatch"] = s.MaybePresentBatch([][]byte{item}, make([]bool, 1))
	_, errs["MaybePresent"] = s.MaybePresent(item)
	if d, err := DigestOf(Config{}, item); err == nil {
		_, errs["LookupDigest"] = s.LookupDigest(d, item)
	}
	_, errs["Digest"] = s.Digest(item)
	_, errs["Stats"] = s.Stats()
	_, errs["Explain"] = s.Explain(item)
	_, errs["Filter"] = s.Filter()
	_, errs["Identity"] = s.Identity()
	_, errs["WriteTo"] = s.WriteTo(io.Discard)
	errs["Verify"] = s.Verify()
	errs["Records"] = nil
	for _, err := range s.Records() {
		if err != nil {
			errs["Records"] = err
		}
	}
	errs["Save"] = s.Save(filepath.Join(t.TempDir(), "saved"))
	return errs
}

// 64 goroutines use snapshots in every way while they are closed: right
// answers or ErrClosed, and nothing for the race detector.
func TestConcurrentUseAndClose(t *testing.T) {
	items := varied(40)
	file := asFile(t, mustNew(t, Config{}, items...))
	path := tempFile(t, file)
	for name, open := range snapshotWays {
		s, err := open(path, file, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := filterOf(t, s)
		var done, answered atomic.Int64
		parallel(64, 64*30, func(worker, i int) {
			item := items[i%len(items)]
			var err error
			good := true
			switch (worker + i) % 8 {
			case 0:
				var r Result
				r, err = s.Lookup(item)
				good = r == Result{true, true, true}
			case 1:
				results := make([]Result, len(items))
				err = s.LookupBatch(items, results)
				good = results[len(items)-1].Duplicate
			case 2:
				n := 0
				for _, e := range s.Records() {
					if n, err = n+1, e; e != nil {
						break
					}
				}
				good = n == len(items)
			case 3:
				var stats Stats
				stats, err = s.Stats()
				good = stats.Records == uint64(len(items))
			case 4:
				if i%4 == 0 {
					err = s.Verify()
				}
			case 5:
				var out bytes.Buffer
				_, err = s.WriteTo(&out)
				good = bytes.Equal(out.Bytes(), file)
			case 6:
				var maybe bool
				maybe, err = f.MaybePresent(item)
				good = maybe && f.PackedBits() != nil
			case 7:
				_, err = s.Identity()
				if done.Load() > 64*15 {
					err = errors.Join(err, s.Close())
				}
			}
			if err == nil && !good || err != nil && !errors.Is(err, ErrClosed) {
				t.Errorf("%s: call %d: %v", name, (worker+i)%8, err)
			}
			if err == nil {
				answered.Add(1)
			}
			done.Add(1)
		})
		if answered.Load() < 64*10 {
			t.Errorf("%s: only %d answers", name, answered.Load())
		}
		if _, err := s.Lookup(items[0]); !isOnly(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is no regular file is neither opened, which could wait for ever, nor
// replaced.
func TestIrregularFiles(t *testing.T) {
	folder := t.TempDir()
	s := mustNew(t, Config{}, "a")
	f, _ := s.Filter()
	pipe := filepath.Join(folder, "pipe")
	paths := []string{folder} // and no device: a mistake would replace it
	if err := exec.Command("mkfifo", pipe).Run(); err == nil {
		paths = append(paths, pipe)
	}
	for _, path := range paths {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err1 := Open(path, OpenOptions{})
		_, err2 := OpenFilter(path, OpenOptions{})
		b, err := NewBuilder(Config{}, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range []error{err1, err2, s.Save(path), f.Save(path), b.Save(t.Context(), path)} {
			if !errors.Is(err, fs.ErrInvalid) || !strings.HasPrefix(err.Error(), "bloom: ") {
				t.Errorf("%s: %d: %v", path, i, err)
			}
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: %v, %v", path, after.Mode(), err)
		}
	}
	for _, path := range []string{"", folder + string(filepath.Separator)} {
		if err := s.Save(path); err == nil || !strings.HasPrefix(err.Error(), "bloom: ") {
			t.Errorf("%q: %v", path, err)
		}
	}
	litter(t, folder, "pipe")
}
