package bloom

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// Benchmarks for our own regressions; bench/ compares with peers.

// queries is n items of one length in random order, numbered from first.
func queries(first, n, length int) [][]byte {
	arena := make([]byte, n*length)
	items := make([][]byte, n)
	for i := range items {
		items[i] = arena[i*length : (i+1)*length : (i+1)*length]
		x := uint64(first + i)
		for j := 0; j+8 <= length; j += 8 { // look random, stay different
			binary.LittleEndian.PutUint64(items[i][j:], (x+uint64(j))*0x9e3779b97f4a7c15)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(n, func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

// built is a snapshot for benchmarks, made once.
var built = func() func(b *testing.B, cfg Config, n, length int) *Snapshot {
	var mu sync.Mutex
	var last *Snapshot
	var name string
	return func(b *testing.B, cfg Config, n, length int) *Snapshot {
		mu.Lock()
		defer mu.Unlock()
		if key := fmt.Sprint(cfg, n, length); key != name {
			s, err := New(cfg, slices.Values(queries(0, n, length)))
			if err != nil {
				b.Fatal(err)
			}
			last, name = s, key
		}
		return last
	}
}()

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1000, 100_000, 4_000_000} {
		for _, length := range []int{24, 200} {
			if n*length > 200_000_000 || testing.Short() && n > 100_000 {
				continue
			}
			hits, misses := queries(0, min(n, 1_000_000), length), queries(1<<30, 1_000_000, length)
			for _, c := range []struct {
				name  string
				items [][]byte
			}{{"hit", hits}, {"miss", misses}} {
				b.Run(fmt.Sprintf("n=%d/length=%d/%s/single", n, length, c.name), func(b *testing.B) {
					s := built(b, Config{}, n, length)
					for i := 0; b.Loop(); i++ {
						s.Lookup(c.items[i%len(c.items)])
					}
				})
				b.Run(fmt.Sprintf("n=%d/length=%d/%s/batch", n, length, c.name), func(b *testing.B) {
					s := built(b, Config{}, n, length)
					const size = 256
					results := make([]Result, size)
					at := 0
					for i := 0; b.Loop(); i++ {
						if i%size == 0 { // ns/op is per item
							if at+size > len(c.items) {
								at = 0
							}
							s.LookupBatch(c.items[at:at+size], results)
							at += size
						}
					}
				})
			}
		}
	}
}

func BenchmarkMaybePresent(b *testing.B) {
	for p := range Protocol(len(protocols)) {
		for _, length := range []int{8, 40, 64, 1000} {
			if length != 8 && p == KeyIndexV1 || length > 64 && p == DocMembershipV1 {
				continue
			}
			b.Run(fmt.Sprintf("%v/length=%d", p, length), func(b *testing.B) {
				var items [][]byte
				for i := range 1000 {
					items = append(items, fmt.Appendf(nil, "%0*d", length, i))
				}
				s, err := New(Config{Protocol: p}, slices.Values(items[:50]))
				if err != nil {
					b.Fatal(err)
				}
				for i := 0; b.Loop(); i++ {
					s.MaybePresent(items[i%len(items)])
				}
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000, 1_000_000} {
		if testing.Short() && n > 100_000 {
			continue
		}
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			items := queries(0, n, 24)
			for b.Loop() {
				if _, err := New(Config{}, slices.Values(items)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
		})
	}
}
