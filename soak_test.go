package bloom

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSoak builds, saves, opens, looks up, swaps and closes with eight
// goroutines for as long as BLOOM_SOAK says:
//
//	BLOOM_SOAK=30m go test -race -run TestSoak -v -timeout 40m .
//
// No member may be lost, and heap, goroutines, descriptors and mappings must
// not grow between the first minute and the last.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("BLOOM_SOAK"))
	if err != nil {
		t.Skip("runs by hand: BLOOM_SOAK says how long")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "s.bloom")
	const n = 5000
	publish := func(generation int) error {
		s, err := New(Config{}, func(yield func([]byte) bool) {
			for i := range n { // the first half stays, the second changes
				g := 0
				if i >= n/2 {
					g = generation
				}
				if !yield(fmt.Appendf(nil, "%d/%d", g, i)) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		return s.Save(path)
	}
	if err := publish(1); err != nil {
		t.Fatal(err)
	}
	open := func(mapped bool) *Snapshot {
		s, err := Open(path, OpenOptions{Mapped: mapped})
		if err != nil {
			t.Error(err)
		}
		return s
	}
	var current atomic.Pointer[Snapshot]
	current.Store(open(false))
	var lookups, swaps atomic.Int64
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	wg.Go(func() {
		for g := 2; time.Now().Before(end) && !t.Failed(); g++ {
			if err := publish(g); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for time.Now().Before(end) && !t.Failed() {
			if old := current.Swap(open(swaps.Add(1)%2 == 0)); swaps.Load()%3 == 0 {
				old.Close() // readers that still have it get ErrClosed
			}
		}
	})
	for worker := range 6 {
		wg.Go(func() {
			items := make([][]byte, 64)
			results := make([]Result, len(items))
			for i := worker; time.Now().Before(end) && !t.Failed(); i++ {
				s := current.Load()
				for j := range items {
					items[j] = fmt.Appendf(items[j][:0], "0/%d", (i*64+j)%(n/2))
				}
				if err := s.LookupBatch(items, results); err != nil {
					if s.file.closed.Load() {
						continue
					}
					t.Error(err)
				}
				for j, r := range results {
					if !r.Duplicate {
						t.Errorf("%s is lost", items[j])
					}
				}
				lookups.Add(int64(len(items)))
				if i%500 == 0 {
					if err := s.Verify(); err != nil && !s.file.closed.Load() {
						t.Error(err)
					}
				}
			}
		})
	}
	var first, last string
	var firstCounts, lastCounts [4]int
	for time.Now().Before(end) {
		time.Sleep(min(20*time.Second, length/4))
		m := heapNow()
		descriptors, _ := os.ReadDir("/proc/self/fd")
		lastCounts = [4]int{int(m.HeapAlloc >> 10), runtime.NumGoroutine(), len(descriptors), mappings(t, path)}
		last = fmt.Sprintf("%v: heap %d KiB, %d goroutines, %d descriptors, %d mappings; %d lookups, %d swaps",
			length-time.Until(end), lastCounts[0], lastCounts[1], lastCounts[2], lastCounts[3], lookups.Load(), swaps.Load())
		if first == "" {
			first, firstCounts = last, lastCounts
		}
	}
	wg.Wait()
	t.Log(first)
	t.Log(last)
	// Mappings go after a collection, by a goroutine of the runtime's: in the
	// midst of swapping there are always some that wait for it.
	current.Store(nil)
	for range 50 {
		heapNow()
		time.Sleep(100 * time.Millisecond)
		if lastCounts[3] = mappings(t, path); lastCounts[3] == 0 {
			break
		}
	}
	if lastCounts[3] != 0 {
		t.Errorf("%d mappings of the file when all is collected", lastCounts[3])
	}
	for i, c := range lastCounts {
		if c > 2*firstCounts[i]+40 {
			t.Errorf("grown: %s; at first %s", last, first)
		}
	}
}
