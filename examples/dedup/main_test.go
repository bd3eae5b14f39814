package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files, by name, into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A result is what a program reads from -json.
type result struct {
	Known    struct{ Documents, Distinct int }
	Filter   map[string]any
	Incoming struct {
		Documents, Candidates, Duplicates, Repeats, Unique int

		DefinitelyNew  int `json:"definitely_new"`
		FalsePositives int `json:"false_positives"`
		SamePath       int `json:"same_path"`
	}
	MeasuredFPRate *float64 `json:"measured_fp_rate"`
	Skipped        int
	Duplicates     []struct{ Incoming, Of string }
	Repeats        []struct{ Incoming, Of string }
}

// succeed runs dedup with -json and checks the sums that the package comment
// promises.
func succeed(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(append([]string{"-json"}, args...), &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	if stderr.Len() != 0 {
		t.Errorf("standard error has %q", &stderr)
	}
	var r result
	decoder := json.NewDecoder(&stdout)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	n := r.Incoming
	for _, sum := range []struct {
		what      string
		got, want int
	}{
		{"definitely_new + candidates", n.DefinitelyNew + n.Candidates, n.Documents},
		{"duplicates + false_positives", n.Duplicates + n.FalsePositives, n.Candidates},
		{"duplicates + repeats + unique", n.Duplicates + n.Repeats + n.Unique, n.Documents},
		{"len(duplicates)", len(r.Duplicates), n.Duplicates},
		{"len(repeats)", len(r.Repeats), n.Repeats},
		{"filter.records", int(r.Filter["records"].(float64)), r.Known.Distinct},
	} {
		if sum.got != sum.want {
			t.Errorf("%s is %d, want %d", sum.what, sum.got, sum.want)
		}
	}
	if r.Duplicates == nil || r.Repeats == nil {
		t.Error("a list is null, not empty")
	}
	return r
}

// fail runs dedup and wants a status, nothing on standard output and an error
// with each of the words.
func fail(t *testing.T, want int, words []string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(args, &stdout, &stderr); status != want {
		t.Errorf("status %d, want %d", status, want)
	}
	if stdout.Len() != 0 {
		t.Errorf("standard output has %q", &stdout)
	}
	if !strings.HasPrefix(stderr.String(), "dedup: ") {
		t.Errorf("standard error %q has not the program's name", &stderr)
	}
	for _, word := range words {
		if !strings.Contains(stderr.String(), word) {
			t.Errorf("standard error %q does not say %q", &stderr, word)
		}
	}
}

// numbered returns so many different documents.
func numbered(what string, n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("%d/%03d", i%7, i)] = fmt.Sprintf("%s document %d\n", what, i)
	}
	return files
}

func TestAllUnique(t *testing.T) {
	known, incoming := tree(t, numbered("known", 300)), tree(t, numbered("incoming", 400))
	// At this rate there are false positives, and they lose nothing either.
	r := succeed(t, "-rate", "0.3", "-known", known, incoming)
	if r.Known.Documents != 300 || r.Known.Distinct != 300 || r.Incoming.Documents != 400 {
		t.Errorf("read %+v and %+v", r.Known, r.Incoming)
	}
	if r.Incoming.Unique != 400 || r.Incoming.FalsePositives == 0 {
		t.Errorf("%+v: want all 400 unique, some of them false positives", r.Incoming)
	}
	if want := float64(r.Incoming.FalsePositives) / 400; r.MeasuredFPRate == nil || *r.MeasuredFPRate != want {
		t.Errorf("measured rate %v, want %v", r.MeasuredFPRate, want)
	}
}

func TestAgainstItself(t *testing.T) {
	files := numbered("known", 300)
	files["empty"] = ""
	files["copy"] = files["0/000"]
	known := tree(t, files)
	r := succeed(t, "-known", known, known)
	if r.Known.Documents != 302 || r.Known.Distinct != 301 {
		t.Errorf("read %+v", r.Known)
	}
	if r.Incoming.Duplicates != 302 || r.Incoming.SamePath != 302 {
		t.Errorf("%+v: want 302 duplicates, all of their own path", r.Incoming)
	}
	if r.MeasuredFPRate != nil {
		t.Errorf("measured rate %v of no document", *r.MeasuredFPRate)
	}
	// So it is through a link, from either side.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(known, link); err == nil {
		for _, args := range [][]string{{"-known", link, known}, {"-known", known, link}} {
			if r := succeed(t, args...); r.Incoming.SamePath != 302 {
				t.Errorf("%q: %+v: want all 302 of their own path", args, r.Incoming)
			}
		}
	}
	// A copy of the tree has the same duplicates at other paths.
	r = succeed(t, "-known", known, tree(t, files))
	if r.Incoming.Duplicates != 302 || r.Incoming.SamePath != 0 {
		t.Errorf("a copy: %+v: want 302 duplicates, none of their own path", r.Incoming)
	}
}

func TestNames(t *testing.T) {
	known := tree(t, map[string]string{"b": "one", "c": "one", "d/e": "two", "f": ""})
	incoming := tree(t, map[string]string{"1": "two", "2": "new", "3": "one", "4": "new", "5": "", "6": "new", "7": "newer"})
	for _, protocol := range []string{"sha256-v2", "blake2b-v2", "doc-membership-v1", "esbloom-v1"} {
		r := succeed(t, "-protocol", protocol, "-known", known, incoming)
		if r.Filter["protocol"] != protocol {
			t.Errorf("the filter is of %v, want %s", r.Filter["protocol"], protocol)
		}
		at := func(root, path string) string { return filepath.Join(root, path) }
		duplicates := []struct{ Incoming, Of string }{
			{at(incoming, "1"), at(known, "d/e")}, {at(incoming, "3"), at(known, "b")}, {at(incoming, "5"), at(known, "f")},
		}
		repeats := []struct{ Incoming, Of string }{
			{at(incoming, "4"), at(incoming, "2")}, {at(incoming, "6"), at(incoming, "2")},
		}
		if !slices.Equal(r.Duplicates, duplicates) {
			t.Errorf("%s: duplicates %v, want %v", protocol, r.Duplicates, duplicates)
		}
		if !slices.Equal(r.Repeats, repeats) {
			t.Errorf("%s: repeats %v, want %v", protocol, r.Repeats, repeats)
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("long ", 1<<18)
	root := tree(t, map[string]string{
		"known":    "a\r\n\nb\n" + long + "\nb",
		"incoming": "b\na\na\r\n\n" + long + "\nb \na",
		"empty":    "",
	})
	known, incoming := filepath.Join(root, "known"), filepath.Join(root, "incoming")
	r := succeed(t, "-lines", "-known", known, incoming, filepath.Join(root, "empty"))
	if r.Known.Documents != 5 || r.Known.Distinct != 4 || r.Incoming.Documents != 7 {
		t.Errorf("read %+v and %+v", r.Known, r.Incoming)
	}
	var got []string
	for _, m := range append(r.Duplicates, r.Repeats...) {
		got = append(got, strings.ReplaceAll(m.Incoming+" = "+m.Of, root+string(filepath.Separator), ""))
	}
	want := []string{
		"incoming:1 = known:3", "incoming:3 = known:1", "incoming:4 = known:2", "incoming:5 = known:4",
		"incoming:7 = incoming:2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("matches %q, want %q", got, want)
	}
}

// TestAgainstMap compares with what a map finds.
func TestAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lines := func() string {
		var b strings.Builder
		for range 3000 {
			fmt.Fprintf(&b, "%d\n", random.IntN(4000))
		}
		return b.String()
	}
	root := tree(t, map[string]string{"known": lines(), "incoming": lines()})
	known, incoming := filepath.Join(root, "known"), filepath.Join(root, "incoming")
	r := succeed(t, "-lines", "-rate", "0.2", "-seed", "a label", "-known", known, incoming)

	firstOf := func(seen map[string]string, path string, match func(name, text string)) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			name := fmt.Sprintf("%s:%d", path, i+1)
			match(name, line)
			if seen[line] == "" {
				seen[line] = name
			}
		}
	}
	inKnown, inIncoming := make(map[string]string), make(map[string]string)
	firstOf(inKnown, known, func(name, text string) {})
	var duplicates, repeats []struct{ Incoming, Of string }
	firstOf(inIncoming, incoming, func(name, text string) {
		if of := inKnown[text]; of != "" {
			duplicates = append(duplicates, struct{ Incoming, Of string }{name, of})
		} else if of := inIncoming[text]; of != "" {
			repeats = append(repeats, struct{ Incoming, Of string }{name, of})
		}
	})
	if !slices.Equal(r.Duplicates, duplicates) {
		t.Errorf("%d duplicates, want %d, or others than a map finds", len(r.Duplicates), len(duplicates))
	}
	if !slices.Equal(r.Repeats, repeats) {
		t.Errorf("%d repeats, want %d, or others than a map finds", len(r.Repeats), len(repeats))
	}
	realised := r.Filter["realised_fp_rate"].(float64)
	if got := *r.MeasuredFPRate; got < realised/2 || got > realised*2 {
		t.Errorf("measured rate %v is far from the realised %v", got, realised)
	}
}

// TestPaths: links are skipped in a folder and followed by name, and what is
// reached twice is read once.
func TestPaths(t *testing.T) {
	root := tree(t, map[string]string{"a": "same", "b": "same"})
	if err := os.Symlink("nowhere", filepath.Join(root, "dangling")); err != nil {
		t.Skip("no symbolic links:", err)
	}
	empty := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	r := succeed(t, "-known", empty, root, filepath.Join(root, "a"), root+"/./b")
	if r.Incoming.Documents != 2 || r.Incoming.Unique != 1 || r.Incoming.Repeats != 1 || r.Skipped != 1 {
		t.Errorf("%+v, %d skipped: want two documents and the link skipped", r.Incoming, r.Skipped)
	}
	r = succeed(t, "-known", empty, link)
	if r.Incoming.Documents != 2 || r.Repeats[0].Incoming != filepath.Join(link, "b") {
		t.Errorf("%+v %v: want two documents under the link's name", r.Incoming, r.Repeats)
	}
	fail(t, 1, []string{"dangling"}, "-known", empty, filepath.Join(root, "dangling"))
}

func TestReport(t *testing.T) {
	known := tree(t, map[string]string{"k": "x"})
	incoming := tree(t, map[string]string{"1": "x", "2": "x", "3": "y", "4": "y", "two words": "x"})
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-list", "2", "-known", known, incoming}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	for _, want := range []string{
		"known documents       1, 1 distinct\n",
		"    duplicates        3 ",
		"  repeats             1 ",
		fmt.Sprintf("  %s = %s\n", filepath.Join(incoming, "1"), filepath.Join(known, "k")),
		fmt.Sprintf("  %s = %s\n", filepath.Join(incoming, "4"), filepath.Join(incoming, "3")),
		"… and 1 more",
		"Nothing was deleted or changed.\n",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &stdout)
		}
	}
	stdout.Reset()
	if run([]string{"-list", "0", "-known", known, incoming}, &stdout, &stderr); !strings.Contains(stdout.String(), `two words" = `) {
		t.Errorf("the report does not quote a name with a space:\n%s", &stdout)
	}
}

func TestErrors(t *testing.T) {
	good := tree(t, map[string]string{"a": "eight by"})
	missing := filepath.Join(good, "missing")
	fail(t, 1, []string{missing}, "-known", missing, good)
	fail(t, 1, []string{missing}, "-known", good, good, missing)
	fail(t, 1, []string{missing}, "-json", "-known", good, missing, good)

	long := strings.Repeat("x", 1_000_001)
	// The bad folder comes first, so that the walk must not go on to the next.
	for _, test := range []struct{ protocol, text, limit string }{
		{"doc-membership-v1", long[:65], "at most 64"},
		{"esbloom-v1", long, "at most 1000000"},
		{"esbloom-v1", "\xff", "not UTF-8"},
		{"key-index-v1", "also 8 b", ""}, // admitted
		{"key-index-v1", "nine byte", "exactly 8"},
	} {
		bad := tree(t, map[string]string{"bad": test.text})
		if test.limit == "" {
			succeed(t, "-protocol", test.protocol, "-known", good, bad)
			continue
		}
		words := []string{filepath.Join(bad, "bad") + ": ", test.limit}
		fail(t, 1, words, "-protocol", test.protocol, "-known", bad, "-known", good, good)
		fail(t, 1, words, "-protocol", test.protocol, "-known", good, good, bad)
	}
	many := tree(t, numbered("", 65))
	fail(t, 1, []string{"more than 64"}, "-protocol", "doc-membership-v1", "-known", many, good)
	// Incoming ones may be more.
	if r := succeed(t, "-protocol", "doc-membership-v1", "-known", good, many); r.Incoming.Unique != 65 {
		t.Errorf("%+v: want 65 unique", r.Incoming)
	}
}

func TestUsage(t *testing.T) {
	good := tree(t, map[string]string{"a": "a"})
	for _, test := range []struct {
		words string
		args  []string
	}{
		{"no -known", []string{good}},
		{"no INCOMING", []string{"-known", good}},
		{"-nonsense", []string{"-nonsense", "-known", good, good}},
		{"unknown protocol", []string{"-protocol", "md5", "-known", good, good}},
		{"rate", []string{"-rate", "0", "-known", good, good}},
		{"rate", []string{"-rate", "1", "-known", good, good}},
		{"rate", []string{"-rate", "NaN", "-known", good, good}},
		{"-list", []string{"-list", "-1", "-known", good, good}},
		{"at most 32", []string{"-seed", strings.Repeat("s", 33), "-known", good, good}},
		{"takes no seed", []string{"-protocol", "esbloom-v1", "-seed", "s", "-known", good, good}},
	} {
		fail(t, 2, []string{test.words, usage}, test.args...)
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-h"}, &stdout, &stderr); status != 0 || stdout.Len() != 0 || !strings.Contains(stderr.String(), usage) {
		t.Errorf("-h: status %d, standard output %q, standard error %q", status, &stdout, &stderr)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenOutput(t *testing.T) {
	good := tree(t, map[string]string{"a": "a"})
	var stderr bytes.Buffer
	if status := run([]string{"-known", good, good}, brokenPipe{}, &stderr); status != 1 || stderr.String() != "dedup: broken pipe\n" {
		t.Errorf("status %d, standard error %q", status, &stderr)
	}
}

// A saved snapshot answers as the documents that it was made of; what it has
// no names for is named by its place.
func TestSavedSnapshot(t *testing.T) {
	known := tree(t, map[string]string{"a": "one", "b": "two", "c": "two", "d": ""})
	incoming := tree(t, map[string]string{"x": "one", "y": "", "z": "three"})
	file := filepath.Join(t.TempDir(), "known.bloom")
	built := succeed(t, "-known", known, "-save", file, incoming)
	saved := succeed(t, "-snapshot", file, incoming)
	if built.Incoming.Duplicates != 2 || saved.Incoming.Duplicates != 2 || saved.Incoming.Unique != 1 || saved.Known.Distinct != 3 {
		t.Errorf("%+v, saved %+v", built, saved)
	}
	for _, d := range saved.Duplicates {
		if !strings.HasPrefix(d.Of, file+"#") {
			t.Errorf("%q is of %q", d.Incoming, d.Of)
		}
	}
	if r := succeed(t, "-known", known, "-save", file); r.Incoming.Documents != 0 {
		t.Errorf("%+v", r)
	}
	var stdout, stderr bytes.Buffer
	for _, args := range [][]string{{"-snapshot", file, "-rate", "0.1", known}, {"-snapshot", file, "-known", known, known}, {"-snapshot", file}} {
		if status := run(args, &stdout, &stderr); status != 2 || stdout.Len() != 0 {
			t.Errorf("%q: status %d, %s", args, status, &stdout)
		}
	}
	if err := os.WriteFile(file, []byte("damaged"), 0o666); err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	if status := run([]string{"-snapshot", file, known}, &stdout, &stderr); status != 1 || stdout.Len() != 0 || !strings.Contains(stderr.String(), file) {
		t.Errorf("status %d, %s%s", status, &stdout, &stderr)
	}
}
