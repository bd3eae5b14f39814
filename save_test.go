package bloom

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The environment variable that makes the test binary the process that is
// killed: the folder to work in.
const saverVariable = "BLOOM_TEST_SAVER"

// TestSaver is that process: it saves two snapshots in turn, for ever.
func TestSaver(t *testing.T) {
	dir := os.Getenv(saverVariable)
	if dir == "" {
		t.Skip("is run by TestSaveKilled")
	}
	var s [2]*Snapshot
	for i := range s {
		var err error
		if s[i], err = Open(filepath.Join(dir, fmt.Sprint("source", i)), OpenOptions{Mapped: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; ; i++ {
		if err := s[i%2].Save(filepath.Join(dir, "kept", "target")); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that is killed while it saves, at any instant, leaves the old
// file or the new one, whole, and others that open it meanwhile never see
// anything else.
func TestSaveKilled(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("no processes here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	kills, wanted := 100, 30
	if testing.Short() {
		kills, wanted = 20, 6
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "kept")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(folder, "target")
	var files [2][]byte
	var ids [2][32]byte
	for i := range files {
		s := mustNew(t, Config{}, slices.Collect(numbered(fmt.Sprint("kind ", i), 30_000))...)
		files[i] = asFile(t, s)
		ids[i], _ = s.Identity()
		if err := errors.Join(s.Save(filepath.Join(dir, fmt.Sprint("source", i))), s.Save(target)); err != nil {
			t.Fatal(err)
		}
	}

	stop := make(chan bool)
	var wg sync.WaitGroup
	var opens [2]int
	wg.Go(func() {
		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
			}
			s, err := Open(target, OpenOptions{Mapped: round%2 == 0})
			if err != nil {
				t.Errorf("while it is saved: %v", err)
				return
			}
			id, err := s.Identity()
			which := slices.Index(ids[:], id)
			if err != nil || which < 0 {
				t.Errorf("a third snapshot: %x, %v", id, err)
				return
			}
			opens[which]++
			for i := range 200 { // spread over the file
				for kind := range 2 {
					item := fmt.Appendf(nil, "%-12s%012d", fmt.Sprint("kind ", kind), 150*i)
					if r, err := s.Lookup(item); err != nil || r.Duplicate != (kind == which) {
						t.Errorf("a mixture: %s in %d: %+v, %v", item, which, r, err)
						return
					}
				}
			}
		}
	})

	temporaries := func() []string {
		names, err := filepath.Glob(filepath.Join(folder, "*.tmp"))
		if err != nil {
			t.Error(err)
		}
		return names
	}
	between := 0
	for i := range kills {
		child := exec.Command(self, "-test.run=^TestSaver$", "-test.timeout=1m")
		child.Env = append(os.Environ(), saverVariable+"="+dir)
		var out bytes.Buffer
		child.Stdout, child.Stderr = &out, &out
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(30 * time.Second)
		for len(temporaries()) == 0 && time.Now().Before(deadline) {
			time.Sleep(20 * time.Microsecond)
		}
		if i%2 == 1 {
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		}
		err := child.Process.Kill()
		child.Wait()
		if err != nil || child.ProcessState.Exited() && runtime.GOOS != "windows" {
			t.Fatalf("the child was not killed but ended by itself: %v\n%s", err, out.String())
		}
		// A temporary that outlives its process was never renamed.
		strays := temporaries()
		if len(strays) > 0 {
			between++
		}
		if file, err := os.ReadFile(target); err != nil || !bytes.Equal(file, files[0]) && !bytes.Equal(file, files[1]) {
			t.Fatalf("kill %d: the file is neither the old nor the new one, %v", i, err)
		}
		if s, err := Open(target, OpenOptions{}); err != nil || s.Len() != 30_000 {
			t.Errorf("kill %d: beside %q: %v, %v", i, strays, s, err)
		}
		for _, name := range strays {
			os.Remove(name)
		}
	}
	close(stop)
	wg.Wait()
	if between < wanted {
		t.Errorf("only %d of %d kills were between the temporary file and its renaming", between, kills)
	}
	if opens[0]+opens[1] == 0 || !testing.Short() && (opens[0] == 0 || opens[1] == 0) {
		t.Errorf("opened %d times", opens)
	}
	t.Logf("%d kills, %d before the renaming; opened %d times meanwhile", kills, between, opens)
}

// onlyFile checks that the folder holds one file, with these bytes.
func onlyFile(t *testing.T, path string, want []byte) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("%v, %v: want %s alone", entries, err, path)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what it was, %v", path, err)
	}
}

// A full disk: an error that says so, the old file as it was, no litter.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	large := mustNew(t, Config{}, slices.Collect(numbered("large", 20_000))...)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	_, err = full.Write([]byte("x"))
	var cause *fs.PathError
	if !errors.As(err, &cause) {
		t.Fatal(err)
	}
	noSpace := cause.Err // syscall.ENOSPC, which not every system has
	if n, err := large.WriteTo(full); n != 0 || !errors.Is(err, noSpace) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := filterOf(t, large).WriteTo(full); n != 0 || !errors.Is(err, noSpace) {
		t.Errorf("filter: %d bytes, %v", n, err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	path := filepath.Join(dir, "set")
	for range 2 {
		err := large.Save(path)
		if !errors.Is(err, noSpace) || !strings.HasPrefix(err.Error(), "bloom: ") {
			t.Errorf("%v", err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%v, %v", entries, err)
		}
	}
	small := mustNew(t, Config{}, varied(500)...)
	if err := small.Save(path); err != nil {
		t.Fatal(err)
	}
	for _, s := range []interface{ Save(string) error }{large, filterOf(t, mustNew(t, Config{Bits: 512 * 4096}, "a"))} {
		if err := s.Save(path); !errors.Is(err, noSpace) {
			t.Errorf("%T: %v", s, err)
		}
		onlyFile(t, path, asFile(t, small))
	}
	if err := small.Save(path); err != nil {
		t.Error(err)
	}
	onlyFile(t, path, asFile(t, small))
}

// What Save does with what is there already, and what it refuses.
func TestSavePlaces(t *testing.T) {
	a, b := mustNew(t, Config{}, "a"), mustNew(t, Config{}, "b")
	saveTo := func(t *testing.T, s interface{ Save(string) error }, path string) {
		t.Helper()
		if err := s.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("permissions", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("other permissions")
		}
		path := filepath.Join(t.TempDir(), "file")
		for _, mode := range []os.FileMode{0o600, 0o640, 0o444, 0o755, 0o666} {
			saveTo(t, a, path)
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			saveTo(t, b, path)
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%v, %v, want %v", info.Mode(), err, mode)
			}
			onlyFile(t, path, asFile(t, b))
		}
	})
	t.Run("secret meanwhile", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := startSaving(path)
		if err != nil {
			t.Fatal(err)
		}
		defer p.abandon()
		if info, err := p.file.Stat(); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o600) {
			t.Errorf("while it is written it has %v, %v", info.Mode(), err)
		}
		f, err := createBeside(path, 0o600) // not only after a moment
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if info, err := f.Stat(); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm()&0o077 != 0) {
			t.Errorf("at first it has %v, %v", info.Mode(), err)
		}
	})
	t.Run("symbolic link", func(t *testing.T) {
		path, dir := filepath.Join(t.TempDir(), "real"), t.TempDir()
		link, chain := filepath.Join(dir, "link"), filepath.Join(t.TempDir(), "chain")
		saveTo(t, a, path)
		if err := errors.Join(os.Symlink(path, link), os.Symlink(link, chain)); err != nil {
			t.Skip(err)
		}
		for _, s := range []*Snapshot{b, a} {
			saveTo(t, s, map[*Snapshot]string{b: link, a: chain}[s])
			if target, err := os.Readlink(link); err != nil || target != path {
				t.Errorf("the link is now %q, %v", target, err)
			}
			onlyFile(t, path, asFile(t, s))
			onlyFile(t, link, asFile(t, s))
		}
	})
	t.Run("link to a file that is not there yet", func(t *testing.T) {
		path, link := filepath.Join(t.TempDir(), "real"), filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(path, link); err != nil {
			t.Skip(err)
		}
		saveTo(t, a, link)
		if target, err := os.Readlink(link); err != nil || target != path {
			t.Errorf("the link is now %q, %v", target, err)
		}
		if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, asFile(t, a)) {
			t.Error(err)
		}
	})
	t.Run("relative link", func(t *testing.T) {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "real"), filepath.Join(dir, "below", "link")
		if err := errors.Join(os.Mkdir(filepath.Dir(link), 0o700), os.Symlink(filepath.Join("..", "real"), link)); err != nil {
			t.Skip(err)
		}
		for _, s := range []*Snapshot{a, b} { // to what is not there yet, and to what is
			saveTo(t, s, link)
			if target, err := os.Readlink(link); err != nil || target != filepath.Join("..", "real") {
				t.Errorf("the link is now %q, %v", target, err)
			}
			if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, asFile(t, s)) {
				t.Error(err)
			}
			onlyFile(t, link, asFile(t, s))
		}
	})
	t.Run("longest name", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Skip(err)
		}
		saveTo(t, a, path)
		onlyFile(t, path, asFile(t, a))
	})
	t.Run("beside temporaries of what was killed", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		for i := range 3 {
			if err := os.WriteFile(fmt.Sprintf("%s.%08x.tmp", path, i), []byte("stray"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(path, OpenOptions{}); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		saveTo(t, a, path)
		if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, asFile(t, a)) {
			t.Error(err)
		}
	})
	t.Run("over what is open", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		saveTo(t, a, path)
		for _, o := range []OpenOptions{{}, {Mapped: true}} {
			got, err := Open(path, o)
			if err != nil {
				t.Fatal(err)
			}
			saveTo(t, b, path)   // what is open stays as it was
			saveTo(t, got, path) // and can be saved in its own place
			onlyFile(t, path, asFile(t, a))
			sameSnapshot(t, got, a, [][]byte{[]byte("a"), []byte("b")}, true)
		}
	})
	t.Run("relative", func(t *testing.T) {
		t.Chdir(t.TempDir())
		saveTo(t, a, "file")
		onlyFile(t, "./file", asFile(t, a))
	})
	t.Run("refused", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "file")
		saveTo(t, a, file)
		for _, path := range []string{filepath.Join(dir, "none", "file"), dir, filepath.Join(file, "below"), ""} {
			for _, s := range []interface{ Save(string) error }{a, filterOf(t, a)} {
				if err := s.Save(path); err == nil || !strings.HasPrefix(err.Error(), "bloom: ") {
					t.Errorf("%q: %v", path, err)
				}
			}
			_, err1 := Open(path, OpenOptions{})
			_, err2 := OpenFilter(path, OpenOptions{})
			for _, err := range []error{err1, err2} {
				if err == nil || !strings.HasPrefix(err.Error(), "bloom: ") {
					t.Errorf("%q: %v", path, err)
				}
			}
		}
		if err := a.Save(filepath.Join(dir, "none", "file")); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, err := Open(filepath.Join(dir, "none"), OpenOptions{}); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		onlyFile(t, file, asFile(t, a))
		if litter, _ := filepath.Glob("*.tmp"); litter != nil {
			t.Errorf("litter: %q", litter)
		}
		if litter, _ := filepath.Glob(dir + ".*"); litter != nil {
			t.Errorf("litter: %q", litter)
		}
	})
}
