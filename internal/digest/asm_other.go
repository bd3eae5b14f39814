//go:build !amd64 || purego

package digest

const hasSHA, hasAVX2, hasAVX512 = false, false, false

func prefetch(p *byte) {}

func prefetchBehind(p *byte) {}

func prefetchAll(base *byte, at *uint64, n int, span uintptr) {}

func sha256x1(t *template, item *byte, n int, out *[4]uint64) { panic("unreachable") }

func sha256x2(t *template, tStride uintptr, items *[]byte, itemStride uintptr, out *[4]uint64, pairs int, filter *byte, lines uint64) (done int) {
	panic("unreachable")
}

func sha256x16(t *template, items *[]byte, out *[4]uint64, groups int, filter *byte, lines uint64) (done int) {
	panic("unreachable")
}

func blake2bBegin(blocks *[128]byte, frames **BLAKE2bFrame, items *[]byte, n int) {
	panic("unreachable")
}

func blake2bLanes(s *lanes, h *[8][4]uint64, m *[4]*[128]byte) { panic("unreachable") }
