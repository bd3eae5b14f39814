//go:build !(aix || darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris)

package mapping

import (
	"errors"
	"os"
)

func mmap(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func munmap([]byte) {}
