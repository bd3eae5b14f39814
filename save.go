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
// that last step an error comes when the new file is in place. A process that
// is killed leaves the temporary file, path with eight hexadecimal digits and
// ".tmp" behind. A file that is replaced hands on its permissions, and not its
// owner; a symbolic link is followed; what is not a regular file is not
// replaced.
func (s *Snapshot) Save(path string) error {
	if err := s.open(); err != nil {
		return err
	}
	return save(path, s)
}

// Save writes the filter alone to a file, as [Snapshot.Save] does.
func (f *Filter) Save(path string) error {
	if err := f.open(); err != nil {
		return err
	}
	return save(path, f)
}

func save(path string, from io.WriterTo) error {
	place, err := startSaving(path)
	if err != nil {
		return err
	}
	return place.finish(func(f *os.File) error {
		_, err := from.WriteTo(f)
		return err
	})
}

// A place is where a file is saved: the temporary file until it is renamed.
type place struct {
	path   string
	folder *os.File // to be synced; nil: cannot be
	file   *os.File
}

// startSaving makes the temporary file, with what it needs, or nothing.
func startSaving(path string) (p *place, err error) {
	defer func() { err = while("saving", err) }()
	p = new(place)
	if p.path, err = saveTarget(path); err != nil {
		return nil, err
	}
	if p.folder, err = openFolder(filepath.Dir(p.path)); err != nil {
		return nil, err
	}
	mode := os.FileMode(0o666) // less what the process takes off
	old, errOld := os.Stat(p.path)
	if errOld == nil {
		mode = old.Mode().Perm()
	}
	if p.file, err = createBeside(p.path, mode); err != nil {
		p.folder.Close()
		return nil, err
	}
	if errOld == nil {
		if err := p.file.Chmod(mode); err != nil { // what was taken off
			p.abandon()
			return nil, err
		}
	}
	return p, nil
}

// abandon leaves all as it was.
func (p *place) abandon() {
	p.file.Close()
	os.Remove(p.file.Name())
	p.folder.Close()
}

// finish puts what write writes in its place.
func (p *place) finish(write func(f *os.File) error) (err error) {
	defer func() { err = while("saving", err) }()
	renamed := false
	defer func() {
		if !renamed { // also where write panics
			p.abandon()
		}
	}()
	if err := write(p.file); err != nil {
		return err
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(p.file.Name(), p.path); err != nil {
		return err
	}
	renamed = true
	defer p.folder.Close()
	return syncFolder(p.folder)
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
	if info, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	} else if err == nil && !info.Mode().IsRegular() {
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
