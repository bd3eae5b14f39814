package bloom

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Saving: a whole file in place of another, whatever happens meanwhile.

// Save writes the snapshot to a file, atomically and durably: after a crash
// at any instant path is the old file or the new one, whole. It writes a
// temporary file beside path, syncs it, renames it and syncs the folder; of
// that last step an error comes when the new file is in place. A file that is
// replaced hands on its permissions, and not its owner; a symbolic link is
// followed; what is not a regular file is not replaced.
func (s *Snapshot) Save(path string) error {
	if err := s.open(); err != nil {
		return err
	}
	return save(path, allOf(s))
}

// Save writes the filter alone to a file, as [Snapshot.Save] does.
func (f *Filter) Save(path string) error {
	if err := f.open(); err != nil {
		return err
	}
	return save(path, allOf(f))
}

func allOf(from io.WriterTo) func(f *os.File) error {
	return func(f *os.File) error {
		_, err := from.WriteTo(f)
		return err
	}
}

// save puts what write writes in place of path.
func save(path string, write func(f *os.File) error) (err error) {
	defer func() { err = while("saving", err) }()
	if path, err = saveTarget(path); err != nil {
		return err
	}
	folder, err := openFolder(filepath.Dir(path)) // before there is anything to undo
	if err != nil {
		return err
	}
	defer folder.Close()
	mode := os.FileMode(0o666) // less what the process takes off
	old, errOld := os.Stat(path)
	if errOld == nil {
		mode = old.Mode().Perm()
	}
	t, err := createBeside(path, mode)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // also where write panics
			t.Close()
			os.Remove(t.Name())
		}
	}()
	if errOld == nil {
		if err := t.Chmod(mode); err != nil { // what was taken off
			return err
		}
	}
	if err := write(t); err != nil {
		return err
	}
	if err := t.Sync(); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	if err := os.Rename(t.Name(), path); err != nil {
		return err
	}
	done = true
	return syncFolder(folder)
}

// saveTarget follows links, also one to what is not there yet, and refuses
// what no file can be put in the place of.
func saveTarget(path string) (string, error) {
	for links := 0; ; links++ {
		link, err := os.Readlink(path)
		if err != nil {
			break
		}
		if links == 40 {
			return "", &fs.PathError{Op: "save", Path: path, Err: errors.New("too many symbolic links")}
		}
		if !filepath.IsAbs(link) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "save", Path: path, Err: fmt.Errorf("not a regular file: %w", fs.ErrInvalid)}
	}
	if _, base := filepath.Split(path); base == "" {
		return "", &fs.PathError{Op: "save", Path: path, Err: fs.ErrInvalid}
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", &fs.PathError{Op: "save", Path: folder, Err: fmt.Errorf("not a folder: %w", fs.ErrInvalid)}
	}
	return path, nil
}

// createBeside creates a file beside path, under a name that no user's file
// has, and never with more permissions than mode.
func createBeside(path string, mode os.FileMode) (*os.File, error) {
	dir, base := filepath.Split(path)
	base = strings.ToValidUTF8(base[:min(len(base), 240)], "") // 255 bytes are the most
	for range 100 {
		name := fmt.Sprintf("%s%s.%08x.tmp", dir, base, rand.Uint32())
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("no free name for a temporary file beside %s", path)
}

// openFolder opens a folder for syncFolder, or nil where folders are not synced.
func openFolder(path string) (*os.File, error) {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" || runtime.GOOS == "wasip1" || runtime.GOOS == "plan9" {
		return nil, nil
	}
	return os.Open(path)
}

// syncFolder makes a rename last.
func syncFolder(folder *os.File) error {
	if folder == nil {
		return nil
	}
	err := folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // this file system has no such thing
	}
	return err
}
