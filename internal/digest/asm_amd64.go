//go:build !purego

package digest

var hasSHA, hasAVX2, hasAVX512 = detect()

const (
	osxsave     = 1 << 27 // leaf 1, ECX
	ymm         = 0x06    // XCR0
	zmm         = 0xe6
	leaf7AVX2   = 1 << 5 // leaf 7, EBX
	leaf7SHA    = 1 << 29
	leaf7AVX512 = 1<<8 | 1<<16 | 1<<30 | 1<<31 // BMI2, F, BW, VL
)

// detect asks for the instructions, and for the operating system's saving of
// the registers. The SHA-256 kernel builds its blocks with AVX2, so needs both.
func detect() (sha, avx2, avx512 bool) {
	leaves, _, _, _ := cpuid(0, 0)
	_, _, ecx, _ := cpuid(1, 0)
	if leaves < 7 || ecx&osxsave == 0 {
		return
	}
	_, ebx, _, _ := cpuid(7, 0)
	return features(ebx, xcr0())
}

// features says what leaf 7 and the saved registers allow.
func features(ebx, saved uint32) (sha, avx2, avx512 bool) {
	avx2 = saved&ymm == ymm && ebx&leaf7AVX2 != 0
	sha = avx2 && ebx&leaf7SHA != 0
	avx512 = avx2 && ebx&leaf7AVX512 == leaf7AVX512 && saved&zmm == zmm
	return
}

func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// xcr0 returns the low half of extended control register 0.
func xcr0() uint32

// prefetch starts loading p's cache line into all levels of the cache.
//
//go:noescape
func prefetch(p *byte)

// prefetchBehind starts loading the three cache lines behind p's.
//
//go:noescape
func prefetchBehind(p *byte)

// prefetchAll starts loading, for each of n offsets, the cache lines of
// base[at] and base[at+span] into all levels of the cache. (Only the second
// one, as is sometimes better where so many are asked for, was a tenth slower.)
//
//go:noescape
func prefetchAll(base *byte, at *uint64, n int, span uintptr)

// sha256x1 hashes the frame of the n bytes at item.
//
//go:noescape
func sha256x1(t *template, item *byte, n int, out *[4]uint64)

// sha256x2 hashes so many pairs of frames, those of a pair in step, and stops
// before the first with an item longer than longest. From one frame to the
// next, template and item advance by their strides. For each digest it
// prefetches its line of the filter.
//
//go:noescape
func sha256x2(t *template, tStride uintptr, items *[]byte, itemStride uintptr, out *[4]uint64, pairs int, filter *byte, lines uint64) (done int)

// sha256x16 hashes so many groups of sixteen one-block frames. It is otherwise
// like sha256x2, and stops before the first group with a longer one.
//
//go:noescape
func sha256x16(t *template, items *[]byte, out *[4]uint64, groups int, filter *byte, lines uint64) (done int)

// blake2bBegin builds the first blocks of n items' frames.
//
//go:noescape
func blake2bBegin(blocks *[128]byte, frames **BLAKE2bFrame, items *[]byte, n int)

// blake2bLanes compresses a block in each lane, going from state h to s.h.
func blake2bLanes(s *lanes, h *[8][4]uint64, m *[4]*[128]byte) {
	if hasAVX512 {
		blake2bx4VL(s, h, m)
	} else {
		blake2bx4(s, h, m)
	}
}

//go:noescape
func blake2bx4(s *lanes, h *[8][4]uint64, m *[4]*[128]byte)

// blake2bx4VL is blake2bx4 with the rotation that AVX-512VL has, a fifth faster.
//
//go:noescape
func blake2bx4VL(s *lanes, h *[8][4]uint64, m *[4]*[128]byte)
