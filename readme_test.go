package bloom

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The Go code in the README is that of an Example, whose output the go tool
// checks; the comments that show output are the Example's Output.
func TestReadmeCode(t *testing.T) {
	readme, examples := readFile(t, "README.md"), readFile(t, "example_test.go")
	unindent := strings.NewReplacer("\t", "", "// Output:\n", "")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no Go code")
	}
	for _, block := range blocks {
		if !strings.Contains(unindent.Replace(examples), unindent.Replace(block[1])) {
			t.Errorf("no Example has this code of README.md:\n%s", block[1])
		}
	}
}

// The figures in the README are those that the code gives.
func TestReadmeFigures(t *testing.T) {
	readme := strings.Join(strings.Fields(readFile(t, "README.md")), " ")
	const n = 100_000 * 512 // so that bits a record are exact
	for _, c := range []struct {
		bits uint64
		k    int
		text string
	}{{10, 6, "%.3g %% for 10 bits a record (k = 6)"}, {16, 9, "%.3g %% for 16 (k = 9)"}, {24, 12, "%.3g %% for 24 (k = 12)"}} {
		p, err := BlockedFPRate(c.bits*n, c.k, n)
		if want := fmt.Sprintf(c.text, 100*p); err != nil || !strings.Contains(readme, want) {
			t.Errorf("README.md does not say %q, %v", want, err)
		}
	}
	for _, c := range []struct {
		rate float64
		text string
	}{{0.01, "%.2g %% at a rate of 1 %%"}, {0.001, "%.2g %% at 0.1 %%"}, {0.0001, "%.2g %% at 0.01 %%"}, {1e-6, "%.2g %% at 1e-6"}} {
		sized, err := Config{FPRate: c.rate}.Resolve(n)
		classic, _ := ClassicBits(n, c.rate)
		if want := fmt.Sprintf(c.text, 100*(float64(sized.Bits)/float64(classic)-1)); err != nil || !strings.Contains(readme, want) {
			t.Errorf("README.md does not say %q, %v", want, err)
		}
	}
	s, err := New(Config{}, numbered("", 100_000))
	if err != nil {
		t.Fatal(err)
	}
	stats, _ := s.Stats()
	above := float64(stats.FilterBytes+stats.SetBytes)/100_000 - 24
	if want := fmt.Sprintf("%.2f bytes a record above", above); !strings.Contains(readme, want) || above > 6 {
		t.Errorf("README.md does not say %q", want)
	}
}

// The ratios in the README are those that bench recorded, and so are the
// figures that docs/peers.svg is drawn from.
func TestReadmeRatios(t *testing.T) {
	readme, results := readFile(t, "README.md"), readFile(t, "bench/RESULTS.md")
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| (.+) \| (\d\.\d\d) \|$`).FindAllStringSubmatch(readme, -1) {
		rows++
		recorded := regexp.MustCompile("(?m)^" + regexp.QuoteMeta("| "+row[1]+" | "+row[2]+" | ") + `[^|]+ \| [^|]+ \| ` + regexp.QuoteMeta(row[3]) + ` \|`)
		if !recorded.MatchString(results) {
			t.Errorf("bench/RESULTS.md has no %q against %q of %s", row[1], row[2], row[3])
		}
	}
	if rows != 7 {
		t.Errorf("README.md has %d ratios, want 7", rows)
	}
}
