package bloom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Golden files are of format version 1 and are never made again: what they
// say holds on every machine for ever. testdata/golden/golden.json names for
// each its identity, its SHA-256, what it was built from, and answers.
type golden struct {
	File     string // in testdata/golden
	Filter   bool   // a filter alone
	SHA256   hexBytes
	Identity hexBytes
	Protocol Protocol
	M        decimal
	K        int
	Seed     hexBytes
	Key      *hexBytes
	Records  []hexBytes // in canonical order
	Absent   []struct {
		Item  hexBytes
		Maybe bool
	}
}

const goldenFolder = "testdata/golden"

func readGolden(t *testing.T) []golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenFolder, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(goldenFolder, "*.bloom"))
	if err != nil || len(files) != len(all) || len(all) != 2*len(protocols)+3 {
		t.Fatalf("%d golden files, %d described, want %d, %v", len(files), len(all), 2*len(protocols)+3, err)
	}
	return all
}

func (g *golden) key() []byte {
	if g.Key == nil {
		return nil
	}
	return *g.Key
}

func (g *golden) config() Config {
	return Config{Protocol: g.Protocol, Bits: uint64(g.M), Hashes: g.K, Seed: g.Seed, Key: g.key()}
}

// Every golden file is what its records give today, and answers as it did.
func TestGolden(t *testing.T) {
	for _, g := range readGolden(t) {
		path := filepath.Join(goldenFolder, g.File)
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(file); !bytes.Equal(sum[:], g.SHA256) {
			t.Errorf("%s has changed", g.File)
			continue
		}
		built := mustNew(t, g.config(), g.Records...)
		var now bytes.Buffer
		if g.Filter {
			f, _ := built.Filter()
			f.WriteTo(&now)
		} else {
			built.WriteTo(&now)
		}
		if !bytes.Equal(now.Bytes(), file) {
			t.Errorf("%s: its records give other bytes today", g.File)
		}
		if g.Filter {
			f, err := OpenFilter(path, OpenOptions{Key: g.key()})
			if err != nil {
				t.Errorf("%s: %v", g.File, err)
				continue
			}
			if id, err := f.Identity(); err != nil || !bytes.Equal(id[:], g.Identity) {
				t.Errorf("%s: identity %x, %v", g.File, id, err)
			}
			for _, a := range g.Absent {
				if maybe, err := f.MaybePresent(a.Item); maybe != a.Maybe || err != nil {
					t.Errorf("%s: %x: %t, %v", g.File, a.Item, maybe, err)
				}
			}
			continue
		}
		for _, mapped := range []bool{false, true} {
			s, err := Open(path, OpenOptions{Key: g.key(), Mapped: mapped})
			if err != nil {
				t.Errorf("%s: %v", g.File, err)
				continue
			}
			if id, err := s.Identity(); err != nil || !bytes.Equal(id[:], g.Identity) {
				t.Errorf("%s: identity %x, %v", g.File, id, err)
			}
			for i, r := range g.Records {
				if result, ordinal, err := s.LookupOrdinal(r); err != nil || !result.Duplicate || ordinal != uint64(i) {
					t.Errorf("%s: record %d: %+v, %d, %v", g.File, i, result, ordinal, err)
				}
			}
			for _, a := range g.Absent {
				if result, err := s.Lookup(a.Item); err != nil || result != (Result{a.Maybe, a.Maybe, false}) {
					t.Errorf("%s: %x: %+v, %v", g.File, a.Item, result, err)
				}
			}
			if err := s.Verify(); err != nil {
				t.Errorf("%s: %v", g.File, err)
			}
		}
	}
}

// What is unknown is an error, never a guess.
func TestGoldenUnknown(t *testing.T) {
	g := readGolden(t)[0]
	file, err := os.ReadFile(filepath.Join(goldenFolder, g.File))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at    int
		value byte
	}{{8, 0}, {8, 2}, {9, 1}, {10, 0}, {10, 3}, {11, 0}, {11, 6}, {11, 255}, {15, 2}, {15, 128}} {
		b := slices.Clone(file)
		b[c.at] = c.value
		resealHeader(b, nil)
		if _, err := Read(bytes.NewReader(b), OpenOptions{}); !isOnly(err, ErrVersion) {
			t.Errorf("byte %d = %d: %v", c.at, c.value, err)
		}
	}
}

// makeGolden wrote the files, once. It is kept to show what they are, and
// refuses to write where they exist.
func TestMakeGolden(t *testing.T) {
	if _, err := os.Stat(goldenFolder); err == nil {
		return
	}
	if err := os.MkdirAll(goldenFolder, 0o777); err != nil {
		t.Fatal(err)
	}
	var all []golden
	add := func(name string, filter bool, cfg Config, records ...string) {
		s := mustNew(t, cfg, records...)
		stats, _ := s.Stats()
		g := golden{File: name + ".bloom", Filter: filter, Protocol: cfg.Protocol, M: decimal(stats.Bits), K: stats.Hashes, Seed: hexBytes(cfg.Seed)}
		if cfg.Key != nil {
			g.Key = (*hexBytes)(&cfg.Key)
		}
		for r := range s.Records() {
			g.Records = append(g.Records, r)
		}
		for i := range 100 {
			item := fmt.Appendf(nil, "%08d", 50_000+i)
			r, err := s.Lookup(item)
			if err != nil {
				t.Fatal(err)
			}
			g.Absent = append(g.Absent, struct {
				Item  hexBytes
				Maybe bool
			}{item, r.MaybePresent})
		}
		var out bytes.Buffer
		var id [32]byte
		if filter {
			f, _ := s.Filter()
			f.WriteTo(&out)
			id, _ = f.Identity()
		} else {
			s.WriteTo(&out)
			id, _ = s.Identity()
		}
		sum := sha256.Sum256(out.Bytes())
		g.SHA256, g.Identity = sum[:], id[:]
		if err := os.WriteFile(filepath.Join(goldenFolder, g.File), out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	var records []string
	for i := range 60 {
		records = append(records, fmt.Sprintf("%08d", i))
	}
	varied := append(slices.Clone(records), "", "\x00", "\xff", "é", "e\u0301", string(repeat(300)))
	for p := range Protocol(len(protocols)) {
		cfg := Config{Protocol: p}
		if protocols[p].mostSeed > 0 {
			cfg.Seed = []byte("golden")
		}
		some := records
		if p == DocMembershipV1 {
			some = records[:40]
		}
		if p == SHA256 || p == BLAKE2b {
			some = varied
		}
		add(p.String(), false, cfg, some...)
		add(p.String()+"-filter", true, cfg, some[:40]...)
	}
	add("keyed", false, Config{Protocol: BLAKE2b, Key: []byte("0123456789abcdef0123456789abcdef")}, append(slices.Clone(varied), string(repeat(70_000)))...)
	add("empty", false, Config{})
	add("saturated", false, Config{Bits: 512, Hashes: 14}, append(varied, func() (more []string) {
		for i := range 400 {
			more = append(more, fmt.Sprint("more", i))
		}
		return more
	}()...)...)
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(goldenFolder, "golden.json"), append(text, '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
}

func (h hexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

func (d decimal) MarshalText() ([]byte, error) { return fmt.Append(nil, uint64(d)), nil }
