package bloom

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/b1cc2673/bloom/internal/mapping"
)

// What takes minutes and gigabytes runs by hand, one at a time:
//
//	BLOOM_LONG=1 go test -run TestLongTenMillion -v .
//	BLOOM_LONG=1 go test -run TestLongSpill -v -timeout 30m .
//	BLOOM_LONG=1 go test -run TestLongFilter -v .
//
// The peak of TestLongSpill's first half alone, for /usr/bin/time -v:
//
//	go test -c -o long.test . && BLOOM_LONG=spill /usr/bin/time -v ./long.test -test.run TestLongSpill
func long(t *testing.T) string {
	mode := os.Getenv("BLOOM_LONG")
	if mode == "" {
		t.Skip("runs by hand: see long_test.go")
	}
	return mode
}

// pseudorandom yields n different 24-byte records from one buffer.
func pseudorandom(n uint64) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		var b [24]byte
		for i := range n {
			for j := range uint64(3) {
				binary.LittleEndian.PutUint64(b[8*j:], (i*3+j+1)*0x9e3779b97f4a7c15)
			}
			if !yield(b[:]) {
				return
			}
		}
	}
}

func heapNow() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// Ten million records: file and live heap within six bytes a record of the
// raw bytes, heap objects as for a hundred thousand, opening within twice a
// checksum pass over filter and index.
func TestLongTenMillion(t *testing.T) {
	long(t)
	var objects [2]int64
	for i, n := range []uint64{100_000, 10_000_000} {
		before := heapNow()
		s, err := New(Config{}, pseudorandom(n))
		if err != nil {
			t.Fatal(err)
		}
		after := heapNow()
		objects[i] = int64(after.HeapObjects) - int64(before.HeapObjects)
		perRecord := float64(after.HeapAlloc-before.HeapAlloc)/float64(n) - 24
		path := filepath.Join(t.TempDir(), "long.bloom")
		if err := s.Save(path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		filePerRecord := float64(info.Size())/float64(n) - 24
		t.Logf("%d records: live heap %.3f and file %.3f bytes a record above the raw bytes, %d heap objects", n, perRecord, filePerRecord, objects[i])
		if perRecord > 6 || filePerRecord > 6 {
			t.Error("more than 6 bytes a record")
		}
		var opens, passes []float64
		for range 9 {
			runtime.GC()
			start := time.Now()
			opened, err := Open(path, OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			opens = append(opens, time.Since(start).Seconds())
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := mapping.Open(file, int64(headerSize+len(opened.filter.bits)+len(opened.set.index)))
			if err != nil {
				t.Fatal(err)
			}
			file.Close()
			start = time.Now()
			crc32.Checksum(m.Bytes(), castagnoli)
			passes = append(passes, time.Since(start).Seconds())
			runtime.KeepAlive(m)
			start = time.Now()
			mapped, err := Open(path, OpenOptions{Mapped: true})
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 && len(opens) == 9 {
				t.Logf("mapped in %v", time.Since(start))
			}
			mapped.Close()
		}
		slices.Sort(opens)
		slices.Sort(passes)
		t.Logf("opened in %.2f ms, one checksum pass takes %.2f ms: %.2f", 1000*opens[4], 1000*passes[4], opens[4]/passes[4])
	}
	if objects[1] > objects[0]+1000 {
		t.Errorf("%d heap objects, and %d for a hundredth of the records", objects[1], objects[0])
	}
}

// 2 GB of records under a budget of 256 MB, with at least twenty spills, and
// the same file as from memory.
func TestLongSpill(t *testing.T) {
	mode := long(t)
	const n = 2_000_000_000 / 24
	folder := t.TempDir()
	path := filepath.Join(folder, "spilled.bloom")
	start := time.Now()
	b, err := NewBuilder(Config{}, BuildOptions{Memory: 256 << 20, Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	for r := range pseudorandom(n) {
		if err := b.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	spills := len(b.spill.runs)
	if err := b.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d records, %d spills, %v, %d MB from the system", uint64(n), spills, time.Since(start), m.Sys>>20)
	if spills < 20 {
		t.Errorf("%d spills", spills)
	}
	if mode == "spill" {
		return
	}
	opened, err := Open(path, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := opened.Identity()
	start = time.Now()
	s, err := New(Config{}, pseudorandom(n))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := s.Identity()
	t.Logf("in memory %v, identity %x", time.Since(start), want)
	if got != want {
		t.Errorf("identity %x, in memory %x", got, want)
	}
}

// A filter of more than 2^32 bits, its positions and its file.
func TestLongFilter(t *testing.T) {
	long(t)
	cfg := Config{Bits: 1<<33 + 512, Hashes: 7}
	s, err := New(cfg, numbered("large", 100_000))
	if err != nil {
		t.Fatal(err)
	}
	above := 0
	for r := range numbered("large", 100_000) {
		if result, err := s.Lookup(r); err != nil || !result.Duplicate {
			t.Fatalf("%s: %+v, %v", r, result, err)
		}
		p, err := ReferencePositions(cfg, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range p {
			if !hasBit(s.filter.bits, p) {
				t.Fatalf("%s: bit %d is not set", r, p)
			}
			if p > 1<<32 {
				above++
			}
		}
	}
	if above < 300_000 {
		t.Errorf("%d positions above 2^32", above)
	}
	path := filepath.Join(t.TempDir(), "large.bloom")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(path, OpenOptions{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Verify(); err != nil {
		t.Error(err)
	}
}
