//go:build !purego

package digest

import "testing"

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
