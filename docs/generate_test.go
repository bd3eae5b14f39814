package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// The pictures are those that the generator makes.
func TestPictures(t *testing.T) {
	for _, c := range []struct {
		file string
		draw func() (string, error)
		long bool
	}{{"lookup.svg", lookup, false}, {"rates.svg", rates, true}, {"peers.svg", peers, false}} {
		t.Run(c.file, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("measures")
			}
			want, err := c.draw()
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("%s is not what the generator makes; run go generate ./docs", c.file)
			}
		})
	}
}

func TestPeers(t *testing.T) {
	const good = `{"machine": "a & b", "date": "2006-01-02", "lookups": [
		{"n": 1000000, "kind": "miss", "name": "this library", "ns": 12.3},
		{"n": 1000000, "kind": "hit", "name": "map", "ns": 45.6}]}`
	got, err := drawPeers([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">1,000,000 records", ">this library<", ">12<", ">map<", ">46<", ">a &amp; b, 2006-01-02<"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, change := range [][2]string{{"miss", "mist"}, {"12.3", "0"}, {"1000000", "0"}, {"machine", "machines"}, {`"map"`, `""`}, {"]}", "]"}} {
		if _, err := drawPeers([]byte(strings.Replace(good, change[0], change[1], 1))); err == nil {
			t.Errorf("%v is accepted", change)
		}
	}
}
