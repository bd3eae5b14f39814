package bloom

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// mappable says whether files are mapped here.
var mappable = runtime.GOOS == "linux" || runtime.GOOS == "darwin"

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
			calls := everyCall(t, got, members[7])
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

// A file that is written into while it is open: lookups find something else or
// fail, and nothing panics, whatever changes between two looks at a byte.
func TestMappedFileWrittenInto(t *testing.T) {
	if !mappable {
		t.Skip("files are not mapped here")
	}
	items := varied(8)
	s := mustNew(t, Config{Bits: 512, Hashes: 1}, items...)
	file := asFile(t, s)
	l, _ := s.headerOf().layout()
	length := 50 * time.Millisecond
	if testing.Short() {
		length /= 5
	}
	for _, o := range []OpenOptions{{}, {Mapped: true}} {
		for _, at := range []uint64{0, 1, 2, 5, 6, 7, 13, 14, 15, 21, 22, 30, 40, l.buckets - l.index + 7} { // heads and records, and the index before
			path := tempFile(t, file)
			got, err := Open(path, o)
			if err != nil {
				t.Fatal(err)
			}
			disk, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			place := int64(l.buckets + at)
			if at > 40 {
				place = int64(l.index + 8)
			}
			var wg sync.WaitGroup
			end := time.Now().Add(length)
			wg.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					disk.WriteAt([]byte{[]byte{0xfc, 0x00, 0xff, 0x20, file[place]}[i%5]}, place)
				}
			})
			for time.Now().Before(end) {
				for _, item := range items {
					if _, err := got.Lookup(item); err != nil && !isOnly(err, ErrCorrupt) {
						t.Errorf("%v, byte %d: %v", o, place, err)
					}
				}
				for what, err := range everyCall(t, got, items[0]) {
					if err != nil && !isOnly(err, ErrCorrupt) {
						t.Errorf("%v, byte %d: %s: %v", o, place, what, err)
					}
				}
			}
			wg.Wait()
			disk.Close()
		}
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
