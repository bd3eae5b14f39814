//go:build aix || darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris

package mapping

import (
	"os"
	"syscall"
)

func mmap(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func munmap(data []byte) {
	// It cannot fail for what mmap gave, and there would be nobody to tell.
	_ = syscall.Munmap(data)
}
