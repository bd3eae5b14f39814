package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/b1cc2673/bloom"
)

// A report is what dedup found. Its JSON names are for programs to rely on.
type report struct {
	Known struct {
		Documents int    `json:"documents"`
		Distinct  uint64 `json:"distinct"`
	} `json:"known"`
	Filter   bloom.Stats `json:"filter"` // of the known documents, with the realised and the expected rate
	Incoming struct {
		Documents      int `json:"documents"`
		DefinitelyNew  int `json:"definitely_new"`  // the filter said no
		Candidates     int `json:"candidates"`      // the filter said maybe
		Duplicates     int `json:"duplicates"`      // candidates that equal a known document
		FalsePositives int `json:"false_positives"` // candidates that equal none
		SamePath       int `json:"same_path"`       // duplicates whose own path was read as known
		Repeats        int `json:"repeats"`         // not known, and equal to an earlier incoming document
		Unique         int `json:"unique"`          // not known, and the first of their bytes
	} `json:"incoming"`
	// The share of false positives among the unique documents; null if there
	// are none. Repeats would count one answer of the filter more than once.
	MeasuredFPRate *float64 `json:"measured_fp_rate"`
	Skipped        int      `json:"skipped"` // entries of folders that are not regular files

	Duplicates []match `json:"duplicates"`
	Repeats    []match `json:"repeats"`
}

// A match is an incoming document and the first that had its bytes: a known
// one for a duplicate, an incoming one for a repeat.
type match struct {
	Incoming name `json:"incoming"`
	Of       name `json:"of"`
}

func (o *options) print(r *report) ([]byte, error) {
	if o.json {
		out, err := json.MarshalIndent(r, "", "  ")
		return append(out, '\n'), err
	}
	var out bytes.Buffer
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&out, "%-22s"+format+"\n", append([]any{label}, args...)...)
	}
	f, n := r.Filter, r.Incoming
	row("known documents", "%d, %d distinct", r.Known.Documents, r.Known.Distinct)
	row("filter", "%v, %d bits (%d bytes), k = %d", f.Protocol, f.Bits, f.FilterBytes, f.Hashes)
	row("false-positive rate", "expected %s, realised %s", percent(f.ExpectedFPRate), percent(f.RealisedFPRate))
	if r.MeasuredFPRate != nil {
		row("", "measured %s, on %d unique documents", percent(*r.MeasuredFPRate), n.Unique)
	}
	row("incoming documents", "%d", n.Documents)
	row("  definitely new", "%d", n.DefinitelyNew)
	row("  candidates", "%d (the filter said maybe)", n.Candidates)
	row("    duplicates", "%d (all bytes are a known document's)", n.Duplicates)
	if n.SamePath > 0 {
		row("", "%d of them were read from a known path: to delete those is to delete the known", n.SamePath)
	}
	row("    false positives", "%d", n.FalsePositives)
	row("not known", "%d", n.DefinitelyNew+n.FalsePositives)
	row("  unique", "%d", n.Unique)
	row("  repeats", "%d (all bytes are an earlier incoming document's)", n.Repeats)
	if r.Skipped > 0 {
		row("skipped", "%d, not regular files", r.Skipped)
	}
	o.printMatches(&out, "duplicates: incoming = known", r.Duplicates)
	o.printMatches(&out, "repeats: incoming = incoming before", r.Repeats)
	out.WriteString("\nNothing was deleted or changed.\n")
	return out.Bytes(), nil
}

func (o *options) printMatches(out *bytes.Buffer, title string, matches []match) {
	if len(matches) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for i, m := range matches {
		if o.list > 0 && i == o.list {
			fmt.Fprintf(out, "  … and %d more (-list 0 names all)\n", len(matches)-i)
			return
		}
		fmt.Fprintf(out, "  %s = %s\n", printable(m.Incoming), printable(m.Of))
	}
}

// printable quotes names that a terminal could take for more than a name.
func printable(n name) string {
	quoted := strconv.Quote(n.String())
	if quoted == `"`+n.String()+`"` && !strings.Contains(quoted, " ") {
		return n.String()
	}
	return quoted
}

func percent(rate float64) string { return fmt.Sprintf("%.3g %%", 100*rate) }

// A progress is a line on a terminal, when a run takes longer than a second.
type progress struct {
	w         io.Writer // nil: no terminal
	documents int
	next      time.Time // when the line is due
	shown     bool
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return &progress{}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{w: w, next: time.Now().Add(time.Second)}
}

func (p *progress) add(documents int) {
	p.documents += documents
	if now := time.Now(); p.w != nil && now.After(p.next) {
		fmt.Fprintf(p.w, "\r%d documents read", p.documents)
		p.next, p.shown = now.Add(time.Second/5), true
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
