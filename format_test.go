package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/b1cc2673/bloom/internal/digest"
)

// asFile is the file of a snapshot or a filter.
func asFile(t testing.TB, w io.WriterTo) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := w.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d bytes written, the buffer has %d, %v", n, b.Len(), err)
	}
	return b.Bytes()
}

// filterOf is the filter of a snapshot.
func filterOf(t testing.TB, s *Snapshot) *Filter {
	t.Helper()
	f, err := s.Filter()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// looseHeader reads what the header of a file says, believing everything.
func looseHeader(b []byte) (h header, known bool) {
	le := binary.LittleEndian
	h = header{
		kind: b[10], k: int(le.Uint16(b[12:])), seed: b[48 : 48+min(b[14], 32)], keyed: b[15]&flagKeyed != 0,
		m: le.Uint64(b[16:]), n: le.Uint64(b[24:]), setBytes: le.Uint64(b[32:]),
		filter: [32]byte(b[80:]), index: [32]byte(b[112:]), set: [32]byte(b[144:]),
	}
	for p := range protocols {
		if protocols[p].number == b[11] {
			h.protocol, known = Protocol(p), true
		}
	}
	return h, known && (h.kind == kindSnapshot || h.kind == kindFilter)
}

// reseal is the forger's tool: it computes every checksum, digest, salt and
// key check of a file again that it can find the place of, so that nothing
// but the content is left to refuse.
func reseal(file, key []byte) []byte {
	b := slices.Clone(file)
	if len(b) < headerSize {
		return b
	}
	h, known := looseHeader(b)
	if l, ok := h.layout(); known && ok && l.total <= uint64(len(b)) {
		filter, index := b[headerSize:headerSize+l.filter], b[l.index:l.index+l.indexLen]
		h.filter = sectionDigest(filter)
		if h.kind == kindSnapshot {
			h.index = sectionDigest(index)
		}
		copy(b[l.checks:], appendChecks(appendChecks(nil, filter), index))
		if h.kind == kindSnapshot {
			set := h.newSet(h.newFilter(key))
			set.index = index
			buckets := b[l.buckets:l.total]
			for i := range set.buckets {
				if from, to := set.offset(i), set.offset(i+1); from <= to && to <= h.setBytes {
					resealBucket(&set, i, buckets[from:to])
				}
			}
			h.set = sectionDigest(buckets)
		}
		copy(b[80:], h.filter[:])
		copy(b[112:], h.index[:])
		copy(b[144:], h.set[:])
	}
	return resealHeader(b, key)
}

// resealHeader computes the header's key check and checksum again, in place.
func resealHeader(b, key []byte) []byte {
	if h, known := looseHeader(b); known && h.keyed && key != nil {
		check := h.seal(digest.NewBLAKE2b(32, key, ""))
		copy(b[176:], check[:])
	}
	binary.LittleEndian.PutUint32(b[headerSize-4:], crc32.Checksum(b[:headerSize-4], castagnoli))
	return b
}

// resealBucket computes both checksums of a bucket again, if its head fits.
func resealBucket(s *frozenSet, number uint64, b []byte) {
	if len(b) < 9 {
		return
	}
	count, code, at := uint64(b[0]>>2), b[0]&3, uint64(1)
	if count == escaped {
		count, at = binary.LittleEndian.Uint64(b[1:]), 9
	}
	check := at + uint64(s.width)
	if size := uint64(len(b)); count > size || check+4+count+count<<code+4 > size {
		return
	}
	own := check + 4 + count + count<<code
	binary.LittleEndian.PutUint32(b[check:], crc32.Checksum(b[own+4:], castagnoli))
	binary.LittleEndian.PutUint32(b[own:], s.headCheck(number, b[:own]))
}

// A sample is a real file of each sort: every protocol, keyed and not, with
// seeds, empty, and filters alone.
type sample struct {
	name    string
	kind    uint8
	cfg     Config
	records [][]byte
	file    []byte
}

// eightBytes is n records that every protocol mayBe.
func eightBytes(n int) (records [][]byte) {
	for i := range n {
		records = append(records, fmt.Appendf(nil, "%08d", i))
	}
	return records
}

func samples(t testing.TB) (all []sample) {
	t.Helper()
	key := []byte("0123456789abcdef")
	for _, c := range []struct {
		cfg Config
		n   int
	}{
		{Config{}, 0}, {Config{}, 1}, {Config{Seed: repeat(32)}, 30}, {Config{Bits: 512, Hashes: 14}, 300},
		{Config{Protocol: BLAKE2b}, 20}, {Config{Protocol: BLAKE2b, Seed: []byte("s"), Key: key}, 20}, {Config{Protocol: BLAKE2b, Key: key}, 0},
		{Config{Protocol: DocMembershipV1, Bits: 13, Hashes: 3, Seed: []byte("lab")}, 9}, {Config{Protocol: DocMembershipV1, Bits: 512, Hashes: 8}, 64},
		{Config{Protocol: ESBloomV1}, 20}, {Config{Protocol: ESBloomV1, Bits: 1, Hashes: 1}, 0},
		{Config{Protocol: KeyIndexV1}, 20}, {Config{Protocol: KeyIndexV1, Bits: 77, Hashes: 256}, 1},
	} {
		records := eightBytes(c.n)
		s := mustNew(t, c.cfg, records...)
		name := fmt.Sprintf("%v of %d", c.cfg, c.n)
		all = append(all, sample{name, kindSnapshot, c.cfg, records, asFile(t, s)},
			sample{name + ", filter alone", kindFilter, c.cfg, records, asFile(t, filterOf(t, s))})
	}
	return all
}

// The forger's tool finds everything: on a real file it changes nothing, and
// on a file with a record, a bit and a seed changed it makes what opens.
func TestReseal(t *testing.T) {
	for _, c := range samples(t) {
		if !bytes.Equal(reseal(c.file, c.cfg.Key), c.file) {
			t.Errorf("%s: resealed, a real file is another", c.name)
		}
		h, err := parseHeader(c.file)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		forged := slices.Clone(c.file)
		forged[headerSize] ^= 1
		if len(h.seed) > 0 {
			forged[48] ^= 1
		}
		if c.kind == kindSnapshot {
			forged[len(forged)-1] ^= 1
			_, err = OpenReaderAt(bytes.NewReader(reseal(forged, c.cfg.Key)), int64(len(forged)), OpenOptions{Key: c.cfg.Key})
		} else {
			_, err = ReadFilter(bytes.NewReader(reseal(forged, c.cfg.Key)), OpenOptions{Key: c.cfg.Key})
		}
		if err != nil {
			t.Errorf("%s: resealed, a forged file is refused: %v", c.name, err)
		}
	}
}

// What append writes parseHeader reads, field for field and byte for byte.
func TestHeaderRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		p := Protocol(rng.IntN(len(protocols)))
		limits := &protocols[p]
		h := header{
			kind: kindSnapshot, protocol: p, k: 1 + rng.IntN(limits.mostHashes), seed: make([]byte, rng.IntN(limits.mostSeed+1)),
			m: limits.leastBits + rng.Uint64N(limits.mostBits-limits.leastBits+1), n: rng.Uint64N(min(limits.mostRecords, 1<<40) + 1),
		}
		if limits.derive == deriveBlock {
			h.m &^= blockBits - 1
		}
		for _, b := range [][]byte{h.seed, h.filter[:], h.index[:], h.set[:]} {
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
		}
		if h.keyed = limits.mostKey > 0 && rng.IntN(2) == 0; h.keyed {
			h.keyCheck = [16]byte(h.filter[:])
		}
		if rng.IntN(2) == 0 {
			h.kind, h.index, h.set = kindFilter, [32]byte{}, [32]byte{}
		} else {
			s := newFrozenSet(h.n)
			h.setBytes = s.buckets*s.headSize(0, 0) + h.n*(2+rng.Uint64N(1000))
		}
		b := h.append(nil)
		got, err := parseHeader(b)
		if err != nil || len(b) != headerSize || fmt.Sprint(got) != fmt.Sprint(h) {
			t.Fatalf("%+v\nread as %+v, %v", h, got, err)
		}
		if len(h.append([]byte("before"))) != len("before")+headerSize {
			t.Fatal("append depends on what is before")
		}
	}
}

// extremes is what a hostile number is.
var extremes = []uint64{0, 1, math.MaxInt32, 1 << 32, 1 << 63, math.MaxUint64}

// The ways of opening a snapshot that is at path and has these bytes.
var snapshotWays = map[string]func(path string, file []byte, o OpenOptions) (*Snapshot, error){
	"Read":        func(_ string, file []byte, o OpenOptions) (*Snapshot, error) { return Read(bytes.NewReader(file), o) },
	"Open":        func(path string, _ []byte, o OpenOptions) (*Snapshot, error) { return Open(path, o) },
	"Open mapped": func(path string, _ []byte, o OpenOptions) (*Snapshot, error) { return Open(path, mapped(o)) },
	"OpenReaderAt": func(_ string, file []byte, o OpenOptions) (*Snapshot, error) {
		return OpenReaderAt(bytes.NewReader(file), int64(len(file)), o)
	},
}

// And of a filter.
var filterWays = map[string]func(path string, file []byte, o OpenOptions) (*Filter, error){
	"ReadFilter": func(_ string, file []byte, o OpenOptions) (*Filter, error) {
		return ReadFilter(bytes.NewReader(file), o)
	},
	"OpenFilter":        func(path string, _ []byte, o OpenOptions) (*Filter, error) { return OpenFilter(path, o) },
	"OpenFilter mapped": func(path string, _ []byte, o OpenOptions) (*Filter, error) { return OpenFilter(path, mapped(o)) },
}

func mapped(o OpenOptions) OpenOptions {
	o.Mapped = true
	return o
}

// A court tries files by all the ways of opening them.
type court struct {
	*testing.T
	path string
}

func newCourt(t *testing.T) court { return court{t, filepath.Join(t.TempDir(), "file")} }

// open opens a file in every way that there is for its kind. There must be a
// value or an error, never both.
func (t court) open(kind uint8, file []byte, o OpenOptions) (opened map[string]verifier, errs map[string]error) {
	t.Helper()
	opened, errs = map[string]verifier{}, map[string]error{}
	if err := os.WriteFile(t.path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	note := func(way string, v verifier, none bool, err error) {
		if errs[way] = err; (err != nil) != none {
			t.Errorf("%s: a value with an error, or neither: %v", way, err)
		}
		if err == nil {
			opened[way] = v
		}
	}
	if kind == kindFilter {
		for way, open := range filterWays {
			f, err := open(t.path, file, o)
			note(way, f, f == nil, err)
		}
		return opened, errs
	}
	for way, open := range snapshotWays {
		s, err := open(t.path, file, o)
		note(way, s, s == nil, err)
	}
	return opened, errs
}

type verifier interface{ Verify() error }

// allocated is how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// isOnly reports whether err is of this sentinel and of no other, and says once
// whose it is.
func isOnly(err, want error) bool {
	if want != nil && err != nil && (!strings.HasPrefix(err.Error(), "bloom: ") || strings.Count(err.Error(), "bloom: ") > 1) {
		return false
	}
	for _, kind := range []error{ErrConfig, ErrItem, ErrCorrupt, ErrVersion, ErrKey, ErrTooLarge, ErrClosed} {
		if errors.Is(err, kind) != (kind == want) {
			return false
		}
	}
	return true
}

// refuse checks that every way of opening the file refuses it with the one
// sentinel, and that hardly more memory is asked for than the file has bytes.
func (t court) refuse(name string, kind uint8, file []byte, key []byte, want error) {
	t.Helper()
	var errs map[string]error
	got := allocated(func() { _, errs = t.open(kind, file, OpenOptions{Key: key, MaxMemory: math.MaxUint64}) })
	if most := 16*uint64(len(file)) + 4<<20; got > most {
		t.Errorf("%s: %d bytes allocated for a file of %d", name, got, len(file))
	}
	for way, err := range errs {
		if math.MaxInt == math.MaxInt32 && want == ErrCorrupt && strings.HasPrefix(way, "Read") && isOnly(err, ErrTooLarge) {
			continue // what does not fit in memory is not looked at
		}
		if !isOnly(err, want) {
			t.Errorf("%s, %s: %v, want %v", name, way, err, want)
		}
	}
}

// A hostileField is a field of the header.
// mayBe says whether a header of another file of this length may have x there, so
// that it is up to the contents to tell.
type hostileField struct {
	name     string
	at, size int
	want     error
	mayBe    func(h header, p *protocol, x uint64) bool
}

func sameLength(h header, change func(h *header)) bool {
	before, _ := h.layout()
	change(&h)
	after, ok := h.layout()
	return ok && after.total == before.total
}

var hostileFields = []hostileField{
	{"magic", 0, 8, ErrVersion, nil},
	{"version", 8, 2, ErrVersion, nil},
	{"kind", 10, 1, ErrVersion, nil},
	{"protocol", 11, 1, ErrVersion, func(_ header, _ *protocol, x uint64) bool { return 1 <= x && x <= 5 }},
	{"k", 12, 2, ErrCorrupt, func(_ header, p *protocol, x uint64) bool { return 1 <= x && x <= uint64(p.mostHashes) }},
	{"len(seed)", 14, 1, ErrCorrupt, func(h header, p *protocol, x uint64) bool {
		return uint64(len(h.seed)) < x && x <= uint64(p.mostSeed)
	}},
	{"flags", 15, 1, ErrVersion, func(_ header, _ *protocol, x uint64) bool { return x <= 1 }},
	{"m", 16, 8, ErrCorrupt, func(h header, _ *protocol, x uint64) bool { return sameLength(h, func(h *header) { h.m = x }) }},
	{"n", 24, 8, ErrCorrupt, func(h header, _ *protocol, x uint64) bool { return sameLength(h, func(h *header) { h.n = x }) }},
	{"bytes of the buckets", 32, 8, ErrCorrupt, nil},
	{"bytes of the file", 40, 8, ErrCorrupt, nil},
	{"seed's last byte", 79, 1, ErrCorrupt, func(h header, _ *protocol, _ uint64) bool { return len(h.seed) == 32 }},
	{"digest of the filter", 80, 8, ErrCorrupt, func(header, *protocol, uint64) bool { return true }},
	{"digest of the index", 112, 8, ErrCorrupt, func(h header, _ *protocol, _ uint64) bool { return h.kind == kindSnapshot }},
	{"digest of the buckets", 144, 8, ErrCorrupt, func(h header, _ *protocol, _ uint64) bool { return h.kind == kindSnapshot }},
	{"key check", 176, 8, ErrCorrupt, nil},
	{"zeros", 192, 8, ErrCorrupt, nil},
	{"last zeros", 244, 8, ErrCorrupt, nil},
}

// Every field of a header at every hostile value, its checksum computed
// again: refused, with the right sentinel, by every way of opening. Where the
// header by itself may be right, Verify refuses.
func TestHostileHeaderFields(t *testing.T) {
	le := binary.LittleEndian
	court := newCourt(t)
	for i, c := range samples(t) {
		if i%3 != 0 || testing.Short() && i%9 != 0 {
			continue // each protocol, as a snapshot or as a filter
		}
		h, err := parseHeader(c.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range hostileFields {
			mask := uint64(1)<<(8*field.size) - 1
			real := le.Uint64(c.file[field.at:]) & mask
			seen := map[uint64]bool{real: true}
			for _, x := range append([]uint64{real - 1, real + 1, 2 * real, 2, 3, 6, 15, 17, 33, 0x80, 0x100, 0x8000}, extremes...) {
				x &= mask
				if seen[x] {
					continue
				}
				seen[x] = true
				forged := slices.Clone(c.file)
				for j := range field.size {
					forged[field.at+j] = byte(x >> (8 * j))
				}
				if resealHeader(forged, c.cfg.Key); bytes.Equal(forged, c.file) {
					continue // a key check
				}
				name := fmt.Sprintf("%s: %s = %d", c.name, field.name, x)
				want := field.want
				if field.name == "kind" && (x == kindSnapshot || x == kindFilter) {
					want = ErrCorrupt // known, but the fields do not fit
				}
				if field.mayBe == nil || !field.mayBe(h, &protocols[h.protocol], x) {
					court.refuse(name, c.kind, forged, c.cfg.Key, want)
					continue
				}
				opened, errs := court.open(c.kind, forged, OpenOptions{Key: c.cfg.Key})
				for way, err := range errs {
					if err == nil {
						err = opened[way].Verify()
					}
					if err == nil && c.kind == kindFilter && field.at != 80 {
						continue // another filter, of the same bits
					}
					if !isOnly(err, ErrCorrupt) && !isOnly(err, ErrKey) {
						t.Errorf("%s, %s: %v", name, way, err)
					}
				}
			}
		}
	}
}

// m and k at and beyond their protocol's limits, in headers that are in
// canonical form, with all lengths following from them.
func TestHostileSizes(t *testing.T) {
	court := newCourt(t)
	for i, c := range samples(t) {
		if testing.Short() && i%5 != 0 {
			continue
		}
		h, err := parseHeader(c.file)
		if err != nil {
			t.Fatal(err)
		}
		p := &protocols[h.protocol]
		type change struct {
			name string
			do   func(h *header)
		}
		var changes []change
		for _, m := range append(slices.Clone(extremes), p.leastBits-1, p.mostBits+1, p.leastBits+1, p.mostBits-1, 1<<62, 1<<48) {
			changes = append(changes, change{fmt.Sprint("m = ", m), func(h *header) { h.m = m }})
		}
		for _, k := range []int{0, p.mostHashes + 1, math.MaxUint16} {
			changes = append(changes, change{fmt.Sprint("k = ", k), func(h *header) { h.k = k }})
		}
		if c.kind == kindSnapshot {
			for _, x := range append(slices.Clone(extremes), 65, 1<<60, 1<<60+1, 1<<61, 1<<62) {
				changes = append(changes, change{fmt.Sprint("n = ", x), func(h *header) { h.n = x }},
					change{fmt.Sprint("buckets = ", x), func(h *header) { h.setBytes = x }},
					change{fmt.Sprint("n and buckets = ", x), func(h *header) { h.n, h.setBytes = x, 4*x }})
			}
		}
		for _, change := range changes {
			forged := h
			change.do(&forged)
			file := append(forged.append(nil), c.file[headerSize:]...)
			if bytes.Equal(file[:192], c.file[:192]) {
				continue
			}
			l, _ := forged.layout()
			if real, _ := h.layout(); p.checkBits(forged.m) == nil && p.checkHashes(forged.k) == nil && l.total == real.total {
				continue // another file of this length: TestHostileHeaderFields
			}
			resealHeader(file, c.cfg.Key)
			court.refuse(c.name+": "+change.name, c.kind, file, c.cfg.Key, ErrCorrupt)
		}
	}
}

// The least and the most bytes of buckets that go with n records, from both
// sides.
func TestLayoutLimits(t *testing.T) {
	const most = math.MaxInt64 / 2
	for _, n := range []uint64{0, 1, 8, 9, 255, 256, 1000, 1 << 40, 1 << 59} {
		s := newFrozenSet(n)
		least := 2*n + s.buckets*s.headSize(0, 0)
		for _, c := range []struct {
			bytes uint64
			ok    bool
		}{{least, true}, {least + 1, true}, {most, true}, {least - 1, false}, {2 * n, false}, {2*n - 1, false}, {n, false}, {most + 1, false}, {math.MaxInt64, false}, {math.MaxUint64, false}} {
			h := header{kind: kindSnapshot, k: 1, m: 512, n: n, setBytes: c.bytes}
			if l, ok := h.layout(); ok != c.ok || ok && l.total != l.buckets+c.bytes {
				t.Errorf("%d records in %d bytes: %+v, %t", n, c.bytes, l, ok)
			}
			if !c.ok {
				if _, err := parseHeader(h.append(nil)); !isOnly(err, ErrCorrupt) {
					t.Errorf("%d records in %d bytes: %v", n, c.bytes, err)
				}
			}
		}
	}
	for _, n := range []uint64{1 << 60, 1<<60 + 1, 1 << 63, math.MaxUint64} {
		if l, ok := (&header{kind: kindSnapshot, m: 512, n: n, setBytes: most}).layout(); ok {
			t.Errorf("%d records: %+v", n, l)
		}
	}
}

// A snapshot is no filter and a filter no snapshot.
func TestOtherKind(t *testing.T) {
	court := newCourt(t)
	for _, c := range samples(t) {
		court.refuse(c.name, kindSnapshot+kindFilter-c.kind, c.file, c.cfg.Key, ErrVersion)
	}
}

// Other files are refused as what they are: unknown.
func TestOtherFiles(t *testing.T) {
	court := newCourt(t)
	for _, b := range []string{"x", "\x89", "\x89PNG\r\n\x1a\n", "\x89bloom\n", "\x89bloom\r\r\n", "bloom", string(make([]byte, 1000)), "PK\x03\x04"} {
		want := ErrVersion
		if b == "\x89" {
			want = ErrCorrupt // it may have been one
		}
		court.refuse(fmt.Sprintf("%.9q", b), kindSnapshot, []byte(b), nil, want)
		court.refuse(fmt.Sprintf("%.9q", b), kindFilter, []byte(b), nil, want)
	}
}

// A stream that promises much and ends gets memory for what came.
func TestPromisesAreNotBelieved(t *testing.T) {
	for _, given := range []int{0, 1, 1000, 1 << 20, 5 << 20} {
		for _, kind := range []uint8{kindSnapshot, kindFilter} {
			h := header{kind: kind, protocol: KeyIndexV1, k: 1, m: 1 << 63}
			if math.MaxInt == math.MaxInt32 {
				h.m = 1 << 32
			}
			if kind == kindSnapshot {
				h.n = 1 << 20
				h.setBytes = 1 << 30
			}
			stream := bytes.NewReader(append(h.append(nil), make([]byte, given)...))
			var err error
			got := allocated(func() {
				if kind == kindSnapshot {
					_, err = Read(stream, OpenOptions{MaxMemory: math.MaxUint64})
				} else {
					_, err = ReadFilter(stream, OpenOptions{MaxMemory: math.MaxUint64})
				}
			})
			if !errors.Is(err, ErrCorrupt) || !errors.Is(err, io.ErrUnexpectedEOF) || got > 4*uint64(given)+3<<20 {
				t.Errorf("%d bytes of %d: %d allocated, %v", given, h.m/8, got, err)
			}
		}
	}
}

// FuzzHeader: what parseHeader accepts it accepts in one form only.
func FuzzHeader(f *testing.F) {
	seeds := 0
	for _, c := range samples(f) {
		f.Add(c.file[:headerSize], false)
		f.Add(c.file[:headerSize], true)
		seeds += 2
	}
	if seeds != 52 {
		f.Errorf("%d seeds, want 52", seeds)
	}
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed && len(b) >= headerSize {
			b = resealHeader(slices.Clone(b), nil)
		}
		h, err := parseHeader(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Errorf("%x: %v", b, err)
			}
			return
		}
		if got := h.append(nil); !bytes.Equal(got, b[:headerSize]) {
			t.Errorf("%x\nis written as\n%x", b[:headerSize], got)
		}
		l, ok := h.layout()
		if !ok || l.filter != (h.m-1)/8+1 || l.index%sectionAlign != 0 || l.checks%sectionAlign != 0 || l.buckets%sectionAlign != 0 || l.total > math.MaxInt64 {
			t.Errorf("%+v: %+v, %t", h, l, ok)
		}
	})
}

// tempFile is a file of the test's own with these bytes.
func tempFile(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
