package main

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
)

// Both main commands, small. inTurn fails them where a contender's answer is wrong.
func TestRatios(t *testing.T) {
	var out bytes.Buffer
	if err := ratios(&out, 5000, 2, 4000); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n| "); got != 13 {
		t.Errorf("%d lines of a table, want 13:\n%s", got, &out)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := table(&out, scope{sizes: []int{24, 200}, counts: []int{1, 3000}, disk: []int{3000}, rounds: 2, queries: 2000}); err != nil {
		t.Fatal(err)
	}
	for _, c := range contenders {
		if !strings.Contains(out.String(), "| "+c.name+" |") {
			t.Errorf("no line for %s:\n%s", c.name, &out)
		}
	}
	for _, name := range []string{"pebble", "bbolt", "`Open`, `Mapped`"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("nothing about %s:\n%s", name, &out)
		}
	}
}

// TestAgree asks all contenders one by one, where inTurn compares counts.
func TestAgree(t *testing.T) {
	r := records{size: 24, n: 3000}
	ask := newAsker(r, 2000)
	q := ask.ask(halves)
	want := map[string]bool{}
	for item := range r.all() {
		want[string(item)] = true
	}
	for _, c := range contenders {
		l := c.build(r, &exact{})
		for i := range q.len() {
			item := q.item(i)
			one := queries{arena: item, size: r.size}
			if got := l.single(one) == 1; got != want[string(item)] {
				t.Fatalf("%s: %x: %v", c.name, item, got)
			}
			if l.batch != nil && (l.batch(one) == 1) != want[string(item)] {
				t.Fatalf("%s: batch: %x is wrong", c.name, item)
			}
			if l.maybe != nil && l.maybe(one) == 0 && want[string(item)] {
				t.Fatalf("%s: misses %x", c.name, item)
			}
		}
	}
}

// TestSized checks that the filters compared have the rate they are said to.
func TestSized(t *testing.T) {
	r := records{size: 24, n: 100_000}
	q := newAsker(r, 400_000).ask(misses)
	for _, c := range contenders {
		want := rate
		switch c.name {
		case nameMap:
			continue
		case nameFuse:
			want = 1.0 / 256
		}
		got := float64(c.build(r, &exact{}).maybe(q)) / float64(q.len())
		if math.Abs(got-want) > 0.1*want {
			t.Errorf("%s: %.4f false positives, want %.4f", c.name, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"other"}, {"ratios", "1"}} {
		if run(args, io.Discard) == nil {
			t.Errorf("%q is no error", args)
		}
	}
}

func TestSkiplists(t *testing.T) {
	var out bytes.Buffer
	if err := skiplists(&out, []int{100}, 2); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n| "); got != 5 {
		t.Errorf("%d lines of a table, want 5:\n%s", got, &out)
	}
}
