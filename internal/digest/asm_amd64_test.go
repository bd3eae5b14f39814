//go:build !purego

package digest

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// What detect finds is what Linux found, so that assembly that could run does
// run, here and in all other tests.
func TestDetect(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nobody to ask")
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	_, line, _ := strings.Cut(string(text), "\nflags")
	line, _, _ = strings.Cut(line, "\n")
	flags := strings.Fields(line)
	has := func(names ...string) bool {
		for _, name := range names {
			if !slices.Contains(flags, name) {
				return false
			}
		}
		return true
	}
	sha, avx2, avx512 := detect()
	if want := has("avx2"); avx2 != want {
		t.Errorf("AVX2 %t, want %t", avx2, want)
	}
	if want := has("avx2", "sha_ni"); sha != want {
		t.Errorf("SHA %t, want %t", sha, want)
	}
	if want := has("avx2", "bmi2", "avx512f", "avx512bw", "avx512vl"); avx512 != want {
		t.Errorf("AVX-512 %t, want %t", avx512, want)
	}
}

// The batches once more, on processors that have less and less.
func TestFeatures(t *testing.T) {
	defer func(sha, avx2, avx512 bool) { hasSHA, hasAVX2, hasAVX512 = sha, avx2, avx512 }(hasSHA, hasAVX2, hasAVX512)
	t.Logf("SHA %v, AVX2 %v, AVX-512 %v", hasSHA, hasAVX2, hasAVX512)
	batches := func(t *testing.T) {
		t.Run("Batch", TestBatch)
		t.Run("LargeBatch", TestLargeBatch)
		t.Run("Each", TestEach)
		t.Run("Counted", TestCounted)
		t.Run("BLAKE2bFrame", TestBLAKE2bFrame)
		t.Run("Allocations", TestAllocations)
	}
	sha := hasSHA
	hasSHA = false
	t.Run("without SHA", batches)
	hasSHA, hasAVX512 = sha, false
	t.Run("without AVX-512", batches)
	hasSHA, hasAVX2 = false, false
	t.Run("with nothing", batches)
}

// Each feature needs its own bits and those of what it builds on.
func TestFeatureBits(t *testing.T) {
	const all = leaf7AVX2 | leaf7SHA | leaf7AVX512
	for _, c := range []struct {
		ebx, saved        uint32
		sha, avx2, avx512 bool
	}{
		{all, zmm, true, true, true},
		{all, ymm, true, true, false},
		{all, 0x02, false, false, false}, // SSE alone is saved
		{all &^ leaf7AVX2, zmm, false, false, false},
		{all &^ leaf7SHA, zmm, false, true, true},
		{all &^ (1 << 8), zmm, true, true, false},
		{all &^ (1 << 16), zmm, true, true, false},
		{all &^ (1 << 30), zmm, true, true, false},
		{all &^ (1 << 31), zmm, true, true, false},
		{leaf7AVX2, ymm, false, true, false},
		{0, zmm, false, false, false},
	} {
		if sha, avx2, avx512 := features(c.ebx, c.saved); sha != c.sha || avx2 != c.avx2 || avx512 != c.avx512 {
			t.Errorf("%#x, %#x: %t, %t, %t, want %t, %t, %t", c.ebx, c.saved, sha, avx2, avx512, c.sha, c.avx2, c.avx512)
		}
	}
}
