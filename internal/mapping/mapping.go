// Package mapping maps files into memory and turns the faults of a mapping,
// such as a file cut short by another process, into errors.
package mapping

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// A Mapping is a file's content in memory, read-only. It goes when nothing
// refers to it any more; there is no other way to end it, so that ending it
// never races a reader. Whoever keeps a slice of Bytes must keep the Mapping.
type Mapping struct{ data []byte }

// Open maps size bytes of f, which may be closed afterwards. It fails on
// systems without mappings.
func Open(f *os.File, size int64) (*Mapping, error) {
	if size <= 0 || int64(int(size)) != size {
		return nil, fmt.Errorf("cannot map %d bytes", size)
	}
	data, err := mmap(f, int(size))
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	m := &Mapping{data}
	runtime.AddCleanup(m, munmap, data)
	return m, nil
}

// Bytes is the file's content. Reading it can fault: see Guard.
func (m *Mapping) Bytes() []byte { return m.data }

// A Fault is an access to a part of a mapping that is no longer there.
type Fault struct{ Addr uintptr }

func (f *Fault) Error() string { return fmt.Sprintf("fault at address %#x of a mapped file", f.Addr) }

// Guard makes faults of this goroutine panics that Recover knows, until
// Recover ends it. Use both in one deferred call:
//
//	defer func(before bool) { mapping.Recover(before, recover(), &err) }(mapping.Guard())
func Guard() (before bool) { return debug.SetPanicOnFault(true) }

// Recover ends what Guard began and turns a fault into a *Fault in err. Any
// other panic goes on.
func Recover(before bool, recovered any, err *error) {
	debug.SetPanicOnFault(before)
	switch p := recovered.(type) {
	case nil:
	case interface{ Addr() uintptr }:
		*err = &Fault{p.Addr()}
	default:
		panic(p)
	}
}

// ReadAt implements [io.ReaderAt].
func (m *Mapping) ReadAt(p []byte, off int64) (n int, err error) {
	defer func(before bool) { Recover(before, recover(), &err) }(Guard())
	if off < 0 || off > int64(len(m.data)) {
		return 0, io.EOF
	}
	n = copy(p, m.data[off:])
	runtime.KeepAlive(m)
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}
