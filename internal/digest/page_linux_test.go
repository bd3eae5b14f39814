package digest

import (
	"syscall"
	"testing"
)

// Items at the very end of what is mapped, at its very beginning, and across
// two pages: a kernel that reads a byte too far dies here.
func TestPageEdges(t *testing.T) {
	page := syscall.Getpagesize()
	m, err := syscall.Mmap(-1, 0, 4*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(m)
	for _, guard := range [][]byte{m[:page], m[3*page:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	inside := m[page : 3*page]
	copy(inside, noise(len(inside)))
	for _, s := range []int{0, 1, 5, 21, 32} {
		prefix := prefixV2(inside[:s])
		f := NewSHA256Frame(prefix, 4)
		g := NewBLAKE2bFrame(NewBLAKE2b(32, nil, ""), prefix, 4)
		for n := range 301 {
			items := [][]byte{inside[:n], inside[len(inside)-n:], inside[page-n/2:][:n], inside[page-n:][:n], inside[page:][:n]}
			items = append(items, items...)
			items = append(items, items...) // enough for every way of doing many
			out, out2 := make([][4]uint64, len(items)), make([][4]uint64, len(items))
			f.SumBatch(items, out, nil)
			g.SumBatch(items, out2, nil)
			for i, item := range items {
				frame := frameOf(prefix, 4, item)
				if got, want := sumOf(&f, item), wantSHA256(frame); got != want || out[i] != want {
					t.Fatalf("SHA-256: seed of %d, item of %d bytes, place %d: single %x, batch %x, want %x", s, n, i, got, out[i], want)
				}
				if got, want := sumOf(&g, item), wantBLAKE2b(t, 32, nil, "", frame); got != want || out2[i] != want {
					t.Fatalf("BLAKE2b: seed of %d, item of %d bytes, place %d: single %x, batch %x, want %x", s, n, i, got, out2[i], want)
				}
			}
		}
	}
}
