package main

import (
	"os"
	"slices"
	"testing"
)

// The pictures are those that the generator makes.
func TestPictures(t *testing.T) {
	for _, p := range pictures {
		t.Run(p.name, func(t *testing.T) {
			if p.name == "rates.svg" && testing.Short() {
				t.Skip("measures")
			}
			want, err := p.draw()
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(p.name)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("%s is not what the generator makes; run go generate ./docs", p.name)
			}
		})
	}
}

// Of all that bench prints, the lookups in memory of short records, and no other.
func TestReadResults(t *testing.T) {
	rows, machine, err := readResults(`A processor, 2 cores; go1.26 linux/amd64; a v1, b v2; 2026-11-30.

### 1000 records of 24 bytes, in memory

| ns a lookup | miss | × | hit | × | half and half | × |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| this library | 62 | 0.87 | 157 | 0.88 | 163 | 0.87 |
| a + map | 44 | 0.61 | 60 | 0.34 | 101 | 0.50 |

| | build s | × |
| this library | 0.025 | 1.15 |

### 1000 records of 200 bytes, in memory

| this library | 1 | 0.87 | 2 | 0.88 | 3 | 0.87 |
`)
	want := []row{{1000, "this library", [2]float64{62, 157}}, {1000, "a + map", [2]float64{44, 60}}}
	if err != nil || !slices.Equal(rows, want) || machine != "A processor, 2 cores; go1.26 linux/amd64, 2026-11-30" {
		t.Errorf("%v, %q, %v", rows, machine, err)
	}
	if _, _, err := readResults("### 1000 records of 24 bytes, in memory\n"); err == nil {
		t.Error("no table is accepted")
	}
}
