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
)

// Saving: a whole file in place of another, whatever happens meanwhile.

// Save writes the snapshot to a file, atomically and durably: after a crash
// at any instant path is the old file or the new one, whole. It writes a
// temporary file beside path, syncs it, renames it and syncs the folder. A
// file that is replaced hands on its permissions, and not its owner; a symbolic
// link is followed; what is not a regular file is not replaced.
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
	defer func() {
		if err != nil && !errors.Is(err, ErrCorrupt) {
			err = fmt.Errorf("bloom: saving: %w", err)
		}
	}()
	path, err = saveTarget(path)
	if err != nil {
		return err
	}
	t, err := createBeside(path)
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
	if old, err := os.Stat(path); err == nil {
		if err := t.Chmod(old.Mode().Perm()); err != nil {
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
	return syncFolder(filepath.Dir(path))
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

// createBeside creates a file beside path that no path of a user's names,
// with the permissions that the process gives to new files.
func createBeside(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	base = strings.ToValidUTF8(base[:min(len(base), 240)], "") // 255 bytes are the most
	for range 100 {
		name := fmt.Sprintf("%s%s.%08x.tmp", dir, base, rand.Uint32())
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("no free name for a temporary file beside %s", path)
}

// syncFolder makes a rename last.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" || runtime.GOOS == "wasip1" || runtime.GOOS == "plan9" {
		return nil // folders cannot be synced there
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
