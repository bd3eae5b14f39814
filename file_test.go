package bloom

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"
)

// spread calls do for 0 to n-1 from a few goroutines, which say who they are.
func spread(workers, n int, do func(worker, i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for w := range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(w, i)
			}
		})
	}
	wg.Wait()
}

// mappable says whether files are mapped here.
var mappable = runtime.GOOS == "linux" || runtime.GOOS == "darwin"

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
	mapped := key
	mapped.Mapped = true
	opened := map[string]*Snapshot{}
	var err [5]error
	opened["Read"], err[0] = Read(bytes.NewReader(file), key)
	opened["Open"], err[1] = Open(path, key)
	opened["Open mapped"], err[2] = Open(path, mapped)
	opened["OpenReaderAt"], err[3] = OpenReaderAt(bytes.NewReader(file), int64(len(file)), key)
	opened["OpenReaderAt mapped"], err[4] = OpenReaderAt(bytes.NewReader(file), int64(len(file)), mapped)
	if err := errors.Join(err[:]...); err != nil {
		t.Fatal(err)
	}
	for name, got := range opened {
		t.Run(name, func(t *testing.T) {
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
	filters := map[string]*Filter{}
	filters["ReadFilter"], err[0] = ReadFilter(bytes.NewReader(file), key)
	filters["OpenFilter"], err[1] = OpenFilter(path, key)
	filters["OpenFilter mapped"], err[2] = OpenFilter(path, mapped)
	if err := errors.Join(err[:3]...); err != nil {
		t.Fatal(err)
	}
	for name, got := range filters {
		t.Run(name, func(t *testing.T) { sameFilter(t, got, f, items) })
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
	opened, errs := map[string]*Snapshot{}, [4]error{}
	opened["Read"], errs[0] = Read(bytes.NewBuffer(file), OpenOptions{})
	opened["Open"], errs[1] = Open(path, OpenOptions{})
	opened["Open mapped"], errs[2] = Open(path, OpenOptions{Mapped: true})
	opened["OpenReaderAt"], errs[3] = OpenReaderAt(bytes.NewReader(file), int64(len(file)), OpenOptions{})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for name, got := range opened {
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
		if sum := (&matcher{want: file}); true {
			if n, err := got.WriteTo(sum); n != int64(len(file)) || err != nil || sum.bad {
				t.Errorf("%v: written again: %d bytes, %v, another: %t", o, n, err, sum.bad)
			}
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
// answer. Read, which meets everything, and Verify refuse every flip.
func TestEveryBitFlip(t *testing.T) {
	for _, c := range []struct {
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
		t.Run(c.name, func(t *testing.T) { checkEveryBitFlip(t, c.cfg, c.records, c.others) })
	}
}

// shortened is n different records of 1 to 4 bytes.
func shortened(n int) (records [][]byte) {
	for i := range n {
		records = append(records, fmt.Appendf(nil, "%x", i*i))
	}
	return records
}

func checkEveryBitFlip(t *testing.T, cfg Config, records, others [][]byte) {
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
	step := 1
	if testing.Short() {
		step = 41
	}
	if raceEnabled {
		step *= 5
	}

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
	spread(len(desks), flips, func(worker, i int) {
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
	for _, cfg := range []Config{{}, {Protocol: BLAKE2b, Key: repeat(16)}} {
		s := mustNew(t, cfg, varied(100)...)
		for kind, file := range map[uint8][]byte{kindSnapshot: asFile(t, s), kindFilter: asFile(t, filterOf(t, s))} {
			path := tempFile(t, file)
			for n := len(file) - 1; n >= 0; n-- {
				if testing.Short() && n%7 != 0 && len(file)-n > 70 {
					continue
				}
				if err := os.Truncate(path, int64(n)); err != nil {
					t.Fatal(err)
				}
				var err [4]error
				key, mapped := OpenOptions{Key: cfg.Key}, OpenOptions{Key: cfg.Key, Mapped: true}
				if kind == kindSnapshot {
					_, err[0] = Read(bytes.NewReader(file[:n]), key)
					_, err[1] = OpenReaderAt(bytes.NewReader(file[:n]), int64(n), key)
					_, err[2] = Open(path, key)
					_, err[3] = Open(path, mapped)
				} else {
					_, err[0] = ReadFilter(bytes.NewReader(file[:n]), key)
					_, err[1] = OpenFilter(path, key)
					_, err[2] = OpenFilter(path, mapped)
					err[3] = err[0]
				}
				for way, err := range err {
					if !isOnly(err, ErrCorrupt) {
						t.Errorf("%v, kind %d, %d of %d bytes, way %d: %v", cfg, kind, n, len(file), way, err)
					}
				}
			}
			court := newCourt(t)
			opened, errs := court.open(kind, append(file[:len(file):len(file)], 0), OpenOptions{Key: cfg.Key})
			for way, err := range errs {
				if strings.HasPrefix(way, "Read") != (err == nil) || err != nil && !isOnly(err, ErrCorrupt) {
					t.Errorf("%v, kind %d, one byte more: %s: %v, %v", cfg, kind, way, opened[way], err)
				}
			}
		}
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
		"error":                {func(int) (int, error) { return 0, errBroken }, errBroken},
		"some and an error":    {func(n int) (int, error) { return n / 2, errBroken }, errBroken},
		"short, no error":      {func(n int) (int, error) { return n - 1, nil }, ErrCorrupt},
		"short, EOF":           {func(n int) (int, error) { return n - 1, io.EOF }, ErrCorrupt},
		"nothing, no error":    {func(int) (int, error) { return 0, nil }, ErrCorrupt},
		"more than was asked":  {func(n int) (int, error) { return n + 1, nil }, nil},
		"less than nothing":    {func(int) (int, error) { return -1, nil }, nil},
		"less, with an error":  {func(int) (int, error) { return -1, errBroken }, nil},
		"all and EOF: no fail": {func(n int) (int, error) { return n, io.EOF }, nil},
		"all and an error":     {func(n int) (int, error) { return n, errBroken }, nil},
	} {
		works := strings.HasPrefix(name, "all and")
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

// A reader that breaks the rules is not taken for a file that is damaged.
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

// Keys that are wrong, missing, superfluous, too short or too long are told
// apart, by every way of opening, and no key is in any file.
func TestKeys(t *testing.T) {
	court := newCourt(t)
	key := []byte("TopSecretKey-0123456789abcdefghi")
	for _, n := range []int{0, 50} {
		keyed := mustNew(t, Config{Protocol: BLAKE2b, Seed: []byte("public"), Key: key}, eightBytes(n)...)
		bare := mustNew(t, Config{Protocol: BLAKE2b, Seed: []byte("public")}, eightBytes(n)...)
		sha := mustNew(t, Config{}, eightBytes(n)...)
		files := func(s *Snapshot) map[uint8][]byte {
			return map[uint8][]byte{kindSnapshot: asFile(t, s), kindFilter: asFile(t, filterOf(t, s))}
		}
		wrong := slices.Clone(key)
		wrong[31] ^= 1
		for _, c := range []struct {
			name string
			s    *Snapshot
			key  []byte
			text string
		}{
			{"right", keyed, key, ""}, {"none", bare, nil, ""}, {"none", sha, nil, ""},
			{"wrong", keyed, wrong, "another key"}, {"a part", keyed, key[:16], "another key"}, {"longer", keyed, append(slices.Clone(key), 0), "another key"},
			{"missing", keyed, nil, "no key is given"},
			{"superfluous", bare, key, "made without one"}, {"superfluous", sha, key, "made without one"}, {"superfluous, empty", bare, []byte{}, "made without one"},
			{"empty", keyed, []byte{}, "0 bytes"}, {"too short", keyed, key[:15], "15 bytes"}, {"too long", keyed, repeat(65), "65 bytes"},
		} {
			for kind, file := range files(c.s) {
				if bytes.Contains(file, key[:8]) || bytes.Contains(file, key[24:]) {
					t.Error("the key is in the file")
				}
				opened, errs := court.open(kind, file, OpenOptions{Key: c.key})
				for way, err := range errs {
					if c.text == "" {
						if err != nil || opened[way].Verify() != nil {
							t.Errorf("%s key, %s: %v", c.name, way, err)
						}
						continue
					}
					if !isOnly(err, ErrKey) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "Secret") {
						t.Errorf("%s key, %s: %v", c.name, way, err)
					}
				}
			}
		}
		// The identity covers the key, and the bytes of the items do not show.
		a, _ := keyed.Identity()
		b, _ := mustNew(t, Config{Protocol: BLAKE2b, Seed: []byte("public"), Key: wrong}, eightBytes(n)...).Identity()
		if c, _ := bare.Identity(); a == b || a == c {
			t.Error("one identity under two keys")
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		o := OpenOptions{Key: key, Mapped: true}
		for _, text := range []string{fmt.Sprintf(verb, o), fmt.Sprintf(verb, &o), fmt.Sprintf(verb, []any{o})} {
			if strings.Contains(text, "TopSecret") || strings.Contains(text, fmt.Sprintf("%x", key)) || strings.Contains(text, "84 111 112") {
				t.Errorf("%s shows the key: %s", verb, text)
			}
		}
	}
}

// After Close every method answers with ErrClosed; the filter that was handed
// out goes on, and so does every other snapshot of the file.
func TestClose(t *testing.T) {
	items := varied(50)
	file := asFile(t, mustNew(t, Config{}, items...))
	path := tempFile(t, file)
	open := map[string]func() (*Snapshot, error){
		"built":        func() (*Snapshot, error) { return New(Config{}, slices.Values(items)) },
		"Read":         func() (*Snapshot, error) { return Read(bytes.NewReader(file), OpenOptions{}) },
		"Open":         func() (*Snapshot, error) { return Open(path, OpenOptions{}) },
		"Open mapped":  func() (*Snapshot, error) { return Open(path, OpenOptions{Mapped: true}) },
		"OpenReaderAt": func() (*Snapshot, error) { return OpenReaderAt(bytes.NewReader(file), int64(len(file)), OpenOptions{}) },
	}
	for name, open := range open {
		s, err1 := open()
		other, err2 := open()
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		f := filterOf(t, s)
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
		for what, err := range everyCall(s, items[0]) {
			if !isOnly(err, ErrClosed) {
				t.Errorf("%s: %s after Close: %v", name, what, err)
			}
		}
		if s.Len() != 0 || s.PackedBits() != nil {
			t.Errorf("%s: %d records, %x after Close", name, s.Len(), s.PackedBits())
		}
		for what, err := range everyCall(other, items[0]) {
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
func everyCall(s *Snapshot, item []byte) map[string]error {
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
	path := filepath.Join(os.TempDir(), fmt.Sprintf("bloom-test-%d", rand.Uint64()))
	errs["Save"] = s.Save(path)
	os.Remove(path)
	return errs
}

// 64 goroutines use snapshots in every way while they are closed: right
// answers or ErrClosed, and nothing for the race detector.
func TestConcurrentUseAndClose(t *testing.T) {
	items := varied(40)
	file := asFile(t, mustNew(t, Config{}, items...))
	path := tempFile(t, file)
	for name, open := range map[string]func() (*Snapshot, error){
		"Read":         func() (*Snapshot, error) { return Read(bytes.NewReader(file), OpenOptions{}) },
		"Open":         func() (*Snapshot, error) { return Open(path, OpenOptions{}) },
		"Open mapped":  func() (*Snapshot, error) { return Open(path, OpenOptions{Mapped: true}) },
		"OpenReaderAt": func() (*Snapshot, error) { return OpenReaderAt(bytes.NewReader(file), int64(len(file)), OpenOptions{}) },
	} {
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		f := filterOf(t, s)
		var done, answered atomic.Int64
		spread(64, 64*30, func(worker, i int) {
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

// A mapped file that another process cuts short: errors, or for the calls
// that have none false and nil; no crash, and no answer that is wrong except
// a member missed by a filter that was left in the mapping.
func TestMappedFileCutShort(t *testing.T) {
	if !mappable {
		t.Skip("files are not mapped here")
	}
	members := slices.Collect(numbered("member", 5000))
	s := mustNew(t, Config{FPRate: 1e-4}, members...)
	file, alone := asFile(t, s), asFile(t, filterOf(t, s))
	h, _ := parseHeader(file)
	l, _ := h.layout()
	page := os.Getpagesize()
	for _, o := range []OpenOptions{{}, {Mapped: true}} {
		for _, size := range []int{0, 1, headerSize, headerSize + 10, page - 1, page, page + 1, int(l.index), int(l.index) + page, int(l.buckets), len(file) / 2, len(file) - page, len(file) - 1} {
			path := tempFile(t, file)
			got, err := Open(path, o)
			if err != nil {
				t.Fatal(err)
			}
			f := filterOf(t, got)
			if err := os.Truncate(path, int64(size)); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%v cut to %d of %d", o, size, len(file))
			failed := 0
			for i, item := range members {
				r, err := got.Lookup(item)
				if err != nil {
					failed++
				}
				if err != nil && !isOnly(err, ErrCorrupt) || err == nil && !r.Duplicate && (!o.Mapped || uint64(size) >= headerSize+l.filter) {
					t.Fatalf("%s: member %d: %+v, %v", name, i, r, err)
				}
			}
			for item := range numbered("absent", 2000) {
				if r, err := got.Lookup(item); err != nil && !isOnly(err, ErrCorrupt) || r.Duplicate {
					t.Fatalf("%s: %s: %+v, %v", name, item, r, err)
				}
			}
			calls := everyCall(got, members[7])
			for what, err := range calls {
				if err != nil && !isOnly(err, ErrCorrupt) {
					t.Errorf("%s: %s: %v", name, what, err)
				}
			}
			for _, what := range []string{"Verify", "WriteTo", "Save", "Records"} {
				if calls[what] == nil {
					t.Errorf("%s: %s gives no error", name, what)
				}
			}
			if size == 0 && (failed != len(members) || o.Mapped && (calls["Stats"] == nil || calls["Explain"] == nil || calls["MaybePresent"] == nil || calls["MaybePresentBatch"] == nil || got.PackedBits() != nil)) {
				t.Errorf("%s: %d of %d members fail; %v", name, failed, len(members), calls)
			}
			if !o.Mapped {
				if maybe, err := f.MaybePresent(members[0]); !maybe || err != nil || f.Verify() != nil {
					t.Errorf("%s: the filter in memory: %t, %v", name, maybe, err)
				}
			} else if err := f.Verify(); uint64(size) < headerSize+l.filter && !isOnly(err, ErrCorrupt) {
				t.Errorf("%s: its filter: %v", name, err)
			}
		}
	}
	path := tempFile(t, alone)
	f, err := OpenFilter(path, OpenOptions{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err1 := f.MaybePresent(members[0])
	_, err2 := f.Stats()
	_, err3 := f.WriteTo(io.Discard)
	for i, err := range []error{err1, err2, err3, f.Verify()} {
		if !isOnly(err, ErrCorrupt) {
			t.Errorf("filter cut to nothing, call %d: %v", i, err)
		}
	}
	if f.PackedBits() != nil {
		t.Error("bits of a filter cut to nothing")
	}
}

// A file that is cut short in the midst of a lookup: a member is found or
// there is an error. What is cut off in the last page reads as zeros.
func TestMappedFileCutDuringLookup(t *testing.T) {
	if !mappable {
		t.Skip("files are not mapped here")
	}
	member := repeat(4000)
	file := asFile(t, mustNew(t, Config{}, member))
	rounds := 200
	if testing.Short() {
		rounds = 60
	}
	path := tempFile(t, file)
	d, err := DigestOf(Config{}, member) // so that a lookup is but the check and the comparison
	if err != nil {
		t.Fatal(err)
	}
	missed := 0
	for range rounds {
		disk, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := disk.WriteAt(file[len(file)-10:], int64(len(file)-10)); err != nil {
			t.Fatal(err)
		}
		got, err := Open(path, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan bool)
		var wg sync.WaitGroup
		wg.Go(func() {
			close(started)
			for {
				r, err := got.LookupDigest(d, member)
				if err == nil && !r.Duplicate {
					missed++
				}
				if err != nil && !isOnly(err, ErrCorrupt) {
					t.Error(err)
				}
				if err != nil || !r.Duplicate {
					return
				}
			}
		})
		<-started
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		if err := disk.Truncate(int64(len(file) - 10)); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		disk.Close()
	}
	if missed > 0 {
		t.Errorf("in %d of %d rounds a member is said to be none", missed, rounds)
	}
}

// mappings counts the mappings of a file.
func mappings(t *testing.T, path string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return strings.Count(string(maps), path)
}

// What was mapped is unmapped when nothing refers to it any more, and not
// before: a filter out of a mapped snapshot keeps the mapping.
func TestMappingsGo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts in /proc/self/maps")
	}
	s := mustNew(t, Config{}, varied(1000)...)
	path, alone := saved(t, s), saved(t, filterOf(t, s))
	gone := func(want int) {
		t.Helper()
		for range 200 {
			runtime.GC()
			if mappings(t, path)+mappings(t, alone) <= want {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if n := mappings(t, path) + mappings(t, alone); n != want {
			t.Errorf("%d mappings, want %d", n, want)
		}
	}
	gone(0)
	func() {
		var all []any
		for i := range 60 {
			got, err := Open(path, OpenOptions{Mapped: i%2 == 0})
			if err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				got.Close() // or just dropped
			}
			f, err := OpenFilter(alone, OpenOptions{Mapped: true})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, got, f)
		}
		if n := mappings(t, path) + mappings(t, alone); n != 120 {
			t.Errorf("%d mappings, want 120", n)
		}
		runtime.KeepAlive(all)
	}()
	gone(0)
	kept := func() *Filter {
		got, err := Open(path, OpenOptions{Mapped: true})
		if err != nil {
			t.Fatal(err)
		}
		return filterOf(t, got)
	}()
	gone(1)
	if maybe, err := kept.MaybePresent(varied(1)[0]); !maybe || err != nil || kept.Verify() != nil {
		t.Errorf("%t, %v", maybe, err)
	}
	kept = nil
	gone(0)
	// What is refused leaves nothing, either.
	damagedFile := asFile(t, s)
	damagedFile[headerSize] ^= 1
	if err := os.WriteFile(path, damagedFile, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if _, err := Open(path, OpenOptions{}); !isOnly(err, ErrCorrupt) {
			t.Fatal(err)
		}
	}
	gone(0)
}

// The environment variable that makes the test binary the process that is
// killed: the folder to work in.
const saverVariable = "BLOOM_TEST_SAVER"

// TestSaver is that process: it saves two snapshots in turn, for ever.
func TestSaver(t *testing.T) {
	dir := os.Getenv(saverVariable)
	if dir == "" {
		t.Skip("is run by TestSaveKilled")
	}
	var s [2]*Snapshot
	for i := range s {
		var err error
		if s[i], err = Open(filepath.Join(dir, fmt.Sprint("source", i)), OpenOptions{Mapped: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; ; i++ {
		if err := s[i%2].Save(filepath.Join(dir, "kept", "target")); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that is killed while it saves, at any instant, leaves the old
// file or the new one, whole, and others that open it meanwhile never see
// anything else.
func TestSaveKilled(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("no processes here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	kills, wanted := 100, 30
	if testing.Short() {
		kills, wanted = 20, 6
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "kept")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(folder, "target")
	var files [2][]byte
	var ids [2][32]byte
	for i := range files {
		s := mustNew(t, Config{}, slices.Collect(numbered(fmt.Sprint("kind ", i), 30_000))...)
		files[i] = asFile(t, s)
		ids[i], _ = s.Identity()
		if err := errors.Join(s.Save(filepath.Join(dir, fmt.Sprint("source", i))), s.Save(target)); err != nil {
			t.Fatal(err)
		}
	}

	stop := make(chan bool)
	var wg sync.WaitGroup
	var opens [2]int
	wg.Go(func() {
		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
			}
			s, err := Open(target, OpenOptions{Mapped: round%2 == 0})
			if err != nil {
				t.Errorf("while it is saved: %v", err)
				return
			}
			id, err := s.Identity()
			which := slices.Index(ids[:], id)
			if err != nil || which < 0 {
				t.Errorf("a third snapshot: %x, %v", id, err)
				return
			}
			opens[which]++
			for i := range 200 { // spread over the file
				for kind := range 2 {
					item := fmt.Appendf(nil, "%-12s%012d", fmt.Sprint("kind ", kind), 150*i)
					if r, err := s.Lookup(item); err != nil || r.Duplicate != (kind == which) {
						t.Errorf("a mixture: %s in %d: %+v, %v", item, which, r, err)
						return
					}
				}
			}
		}
	})

	temporaries := func() []string {
		names, err := filepath.Glob(filepath.Join(folder, "*.tmp"))
		if err != nil {
			t.Error(err)
		}
		return names
	}
	between := 0
	for i := range kills {
		child := exec.Command(self, "-test.run=^TestSaver$", "-test.timeout=1m")
		child.Env = append(os.Environ(), saverVariable+"="+dir)
		var out bytes.Buffer
		child.Stdout, child.Stderr = &out, &out
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(30 * time.Second)
		for len(temporaries()) == 0 && time.Now().Before(deadline) {
			time.Sleep(20 * time.Microsecond)
		}
		if i%2 == 1 {
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		}
		err := child.Process.Kill()
		child.Wait()
		if err != nil || child.ProcessState.Exited() && runtime.GOOS != "windows" {
			t.Fatalf("the child was not killed but ended by itself: %v\n%s", err, out.String())
		}
		// A temporary that outlives its process was never renamed.
		strays := temporaries()
		if len(strays) > 0 {
			between++
		}
		if file, err := os.ReadFile(target); err != nil || !bytes.Equal(file, files[0]) && !bytes.Equal(file, files[1]) {
			t.Fatalf("kill %d: the file is neither the old nor the new one, %v", i, err)
		}
		if s, err := Open(target, OpenOptions{}); err != nil || s.Len() != 30_000 {
			t.Errorf("kill %d: beside %q: %v, %v", i, strays, s, err)
		}
		for _, name := range strays {
			os.Remove(name)
		}
	}
	close(stop)
	wg.Wait()
	if between < wanted {
		t.Errorf("only %d of %d kills were between the temporary file and its renaming", between, kills)
	}
	if opens[0]+opens[1] == 0 || !testing.Short() && (opens[0] == 0 || opens[1] == 0) {
		t.Errorf("opened %d times", opens)
	}
	t.Logf("%d kills, %d before the renaming; opened %d times meanwhile", kills, between, opens)
}

// onlyFile checks that the folder holds one file, with these bytes.
func onlyFile(t *testing.T, path string, want []byte) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("%v, %v: want %s alone", entries, err, path)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what it was, %v", path, err)
	}
}

// A full disk: an error that says so, the old file as it was, no litter.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	large := mustNew(t, Config{}, slices.Collect(numbered("large", 20_000))...)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	_, err = full.Write([]byte("x"))
	var cause *fs.PathError
	if !errors.As(err, &cause) {
		t.Fatal(err)
	}
	noSpace := cause.Err // syscall.ENOSPC, which not every system has
	if n, err := large.WriteTo(full); n != 0 || !errors.Is(err, noSpace) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := filterOf(t, large).WriteTo(full); n != 0 || !errors.Is(err, noSpace) {
		t.Errorf("filter: %d bytes, %v", n, err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	path := filepath.Join(dir, "set")
	for i := range 3 {
		err := large.Save(path)
		if !errors.Is(err, noSpace) || !strings.HasPrefix(err.Error(), "bloom: ") {
			t.Errorf("%v", err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%v, %v", entries, err)
		}
		if i == 2 {
			break
		}
	}
	small := mustNew(t, Config{}, varied(500)...)
	if err := small.Save(path); err != nil {
		t.Fatal(err)
	}
	for _, s := range []interface{ Save(string) error }{large, filterOf(t, mustNew(t, Config{Bits: 512 * 4096}, "a"))} {
		if err := s.Save(path); !errors.Is(err, noSpace) {
			t.Errorf("%T: %v", s, err)
		}
		onlyFile(t, path, asFile(t, small))
	}
	if err := small.Save(path); err != nil {
		t.Error(err)
	}
	onlyFile(t, path, asFile(t, small))
}

// What Save does with what is there already, and what it refuses.
func TestSavePlaces(t *testing.T) {
	a, b := mustNew(t, Config{}, "a"), mustNew(t, Config{}, "b")
	save := func(t *testing.T, s interface{ Save(string) error }, path string) {
		t.Helper()
		if err := s.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("permissions", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("other permissions")
		}
		path := filepath.Join(t.TempDir(), "file")
		for _, mode := range []os.FileMode{0o600, 0o640, 0o444, 0o755} {
			save(t, a, path)
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			save(t, b, path)
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%v, %v, want %v", info.Mode(), err, mode)
			}
			onlyFile(t, path, asFile(t, b))
		}
	})
	t.Run("symbolic link", func(t *testing.T) {
		path, dir := filepath.Join(t.TempDir(), "real"), t.TempDir()
		link, chain := filepath.Join(dir, "link"), filepath.Join(t.TempDir(), "chain")
		save(t, a, path)
		if err := errors.Join(os.Symlink(path, link), os.Symlink(link, chain)); err != nil {
			t.Skip(err)
		}
		for _, s := range []*Snapshot{b, a} {
			save(t, s, map[*Snapshot]string{b: link, a: chain}[s])
			if target, err := os.Readlink(link); err != nil || target != path {
				t.Errorf("the link is now %q, %v", target, err)
			}
			onlyFile(t, path, asFile(t, s))
			onlyFile(t, link, asFile(t, s))
		}
	})
	t.Run("link to a file that is not there yet", func(t *testing.T) {
		path, link := filepath.Join(t.TempDir(), "real"), filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(path, link); err != nil {
			t.Skip(err)
		}
		save(t, a, link)
		if target, err := os.Readlink(link); err != nil || target != path {
			t.Errorf("the link is now %q, %v", target, err)
		}
		if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, asFile(t, a)) {
			t.Error(err)
		}
	})
	t.Run("relative link", func(t *testing.T) {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "real"), filepath.Join(dir, "below", "link")
		if err := errors.Join(os.Mkdir(filepath.Dir(link), 0o700), os.Symlink(filepath.Join("..", "real"), link)); err != nil {
			t.Skip(err)
		}
		for _, s := range []*Snapshot{a, b} { // to what is not there yet, and to what is
			save(t, s, link)
			if target, err := os.Readlink(link); err != nil || target != filepath.Join("..", "real") {
				t.Errorf("the link is now %q, %v", target, err)
			}
			if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, asFile(t, s)) {
				t.Error(err)
			}
			onlyFile(t, link, asFile(t, s))
		}
	})
	t.Run("longest name", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Skip(err)
		}
		save(t, a, path)
		onlyFile(t, path, asFile(t, a))
	})
	t.Run("over what is open", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		save(t, a, path)
		for _, o := range []OpenOptions{{}, {Mapped: true}} {
			got, err := Open(path, o)
			if err != nil {
				t.Fatal(err)
			}
			save(t, b, path)   // what is open stays as it was
			save(t, got, path) // and can be saved in its own place
			onlyFile(t, path, asFile(t, a))
			sameSnapshot(t, got, a, [][]byte{[]byte("a"), []byte("b")}, true)
		}
	})
	t.Run("relative", func(t *testing.T) {
		t.Chdir(t.TempDir())
		save(t, a, "file")
		onlyFile(t, "./file", asFile(t, a))
	})
	t.Run("refused", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "file")
		save(t, a, file)
		for _, path := range []string{filepath.Join(dir, "none", "file"), dir, filepath.Join(file, "below"), ""} {
			for _, s := range []interface{ Save(string) error }{a, filterOf(t, a)} {
				if err := s.Save(path); err == nil || !strings.HasPrefix(err.Error(), "bloom: ") {
					t.Errorf("%q: %v", path, err)
				}
			}
			_, err1 := Open(path, OpenOptions{})
			_, err2 := OpenFilter(path, OpenOptions{})
			for _, err := range []error{err1, err2} {
				if err == nil || !strings.HasPrefix(err.Error(), "bloom: ") {
					t.Errorf("%q: %v", path, err)
				}
			}
		}
		if err := a.Save(filepath.Join(dir, "none", "file")); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, err := Open(filepath.Join(dir, "none"), OpenOptions{}); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		onlyFile(t, file, asFile(t, a))
		if litter, _ := filepath.Glob("*.tmp"); litter != nil {
			t.Errorf("litter: %q", litter)
		}
		if litter, _ := filepath.Glob(dir + ".*"); litter != nil {
			t.Errorf("litter: %q", litter)
		}
	})
}

// A stray temporary of a process that was killed changes nothing.
func TestStrayTemporary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	a := mustNew(t, Config{}, "a")
	for i := range 3 {
		if err := os.WriteFile(fmt.Sprintf("%s.%08x.tmp", path, i), []byte("stray"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path, OpenOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := a.Save(path); err != nil {
		t.Fatal(err)
	}
	if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, asFile(t, a)) {
		t.Error(err)
	}
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

// What is no regular file is neither opened, which could wait for ever, nor
// replaced.
func TestIrregularFiles(t *testing.T) {
	folder := t.TempDir()
	s := mustNew(t, Config{}, "a")
	f, _ := s.Filter()
	pipe := filepath.Join(folder, "pipe")
	paths := []string{folder, os.DevNull}
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

// Readers and writers that break the rules get errors, and their panics are
// the caller's to recover, whatever goroutine they happen in.
func TestUnrulyReaders(t *testing.T) {
	s := mustNew(t, Config{}, "a", "b")
	file := fileOf(t, s)
	for _, n := range []int{-1, 1 << 20, 0} {
		_, err := Read(readerFunc(func([]byte) (int, error) { return n, nil }), OpenOptions{})
		if err == nil || n == 0 && !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("%d read: %v", n, err)
		}
	}
	if n, err := s.WriteTo(writerFunc(func(p []byte) (int, error) { return len(p) + 1, nil })); err == nil || n > int64(len(file)) {
		t.Errorf("%d written, %v", n, err)
	}
	at := &flakyAt{r: bytes.NewReader(file)}
	opened, err := OpenReaderAt(at, int64(len(file)), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at.panics = true
	defer func() {
		if p := recover(); p != "unruly" {
			t.Errorf("recovered %v", p)
		}
	}()
	opened.Verify()
	t.Error("no panic")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type flakyAt struct {
	r      io.ReaderAt
	panics bool
}

func (f *flakyAt) ReadAt(p []byte, at int64) (int, error) {
	if f.panics {
		panic("unruly")
	}
	return f.r.ReadAt(p, at)
}
