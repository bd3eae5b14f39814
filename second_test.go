package bloom

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/reader.py was written from SPEC.md alone. It opens files that this
// package writes and answers as it does: 10,000 queries in all.
func TestSecondImplementation(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	key := repeat(48)
	for _, c := range []struct {
		name string
		cfg  Config
		n    int
	}{
		{"sha256", Config{Seed: []byte("seed")}, 3000},
		{"blake2b", Config{Protocol: BLAKE2b}, 1000},
		{"keyed", Config{Protocol: BLAKE2b, Seed: []byte("s"), Key: key, FPRate: 0.1}, 1000},
		{"doc", Config{Protocol: DocMembershipV1, Bits: 99, Hashes: 2}, 64},
		{"es", Config{Protocol: ESBloomV1, Bits: 9_000_001, Hashes: 3}, 500}, // more than one chunk
		{"key", Config{Protocol: KeyIndexV1, FPRate: 0.2}, 300},
		{"empty", Config{}, 0},
	} {
		var queries [][]byte
		for i := range 1429 {
			queries = append(queries, fmt.Appendf(nil, "%08d", i*3)) // about a third are members
		}
		var records [][]byte
		for i := range c.n {
			records = append(records, fmt.Appendf(nil, "%08d", i))
		}
		if c.cfg.Protocol == SHA256 && c.n > 0 {
			more, others := mixed()
			records = append(records, more...)
			queries = append(append(queries, more...), others...)
		}
		s := mustNew(t, c.cfg, records...)
		f, _ := s.Filter()
		folder := t.TempDir()
		asked := filepath.Join(folder, "queries")
		var text bytes.Buffer
		var want, wantFilter strings.Builder
		for _, q := range queries {
			fmt.Fprintf(&text, "%x\n", q)
			r, ordinal, err := s.LookupOrdinal(q)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case r.Duplicate:
				fmt.Fprintf(&want, "record %d\n", ordinal)
			case r.MaybePresent:
				fmt.Fprintln(&want, "maybe")
			default:
				fmt.Fprintln(&want, "no")
			}
			if r.MaybePresent {
				fmt.Fprintln(&wantFilter, "maybe")
			} else {
				fmt.Fprintln(&wantFilter, "no")
			}
		}
		if err := os.WriteFile(asked, text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		paths := [2]string{filepath.Join(folder, "s"), filepath.Join(folder, "f")}
		if err := s.Save(paths[0]); err != nil {
			t.Fatal(err)
		}
		if err := f.Save(paths[1]); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{want.String(), wantFilter.String()} {
			args := []string{"-B", "testdata/reader.py", paths[i], "--queries", asked}
			if c.cfg.Key != nil {
				args = append(args, "--key", fmt.Sprintf("%x", key))
			}
			out, err := exec.Command(python, args...).CombinedOutput()
			if err != nil || string(out) != want {
				t.Errorf("%s: %s: other answers, %v\n%.300s", c.name, paths[i], err, out)
			}
		}
	}
}
