package mapping

import (
	"syscall"
	"unsafe"
)

// Huge asks for large pages for memory that is read at random: with small
// ones a look-up misses the TLB as often as the cache. It is best called
// before the memory is first written. It is advice, and may do nothing.
func Huge(b []byte) {
	const (
		hugePage     = 2 << 20 // of amd64 and arm64; elsewhere the advice is for less
		madvHugePage = 14      // not in package syscall on every architecture
	)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := int(-start & (hugePage - 1)) // whole pages only: the rest of them is other memory
	if size := (len(b) - skip) &^ (hugePage - 1); size > 0 {
		_ = syscall.Madvise(b[skip:skip+size:skip+size], madvHugePage)
	}
}
