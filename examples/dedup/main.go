// Dedup reports which incoming documents are already known, and which of them
// repeat each other, by comparing all bytes.
//
// Usage:
//
//	go run ./examples/dedup -known PATH [-known PATH …] [-save FILE] [flags] INCOMING …
//	go run ./examples/dedup -snapshot FILE [flags] INCOMING …
//
// With -save the snapshot of the known documents is also kept in a file, and
// -snapshot takes it from there instead of reading the documents again. The
// file has their bytes and not their names: a duplicate's original is then
// named FILE#N, the N-th record in the snapshot's own order, from 0. With -save
// there may be no INCOMING.
//
// Each PATH and INCOMING is a file, or a folder that is walked to its depths.
// A document is a whole file, an empty one too. With -lines it is a line of a
// file, without its "\n" and nothing else taken off: a "\r" before it belongs
// to the document, an empty line is a document, and a last line needs no "\n".
//
// In a folder only regular files are read: symbolic links, devices, sockets
// and pipes are skipped and counted. A path given by name is read whatever it
// is, links followed, so /dev/stdin works. A file that is reached twice on
// one side, through a symbolic link, is read once; hard links are two files. A file that cannot be read, or that the protocol does
// not admit, ends the run: there is no report of a part.
//
// The flags:
//
//	-lines          a document is a line, named file:line
//	-rate P         false-positive rate that the filter is built for (0.01)
//	-protocol NAME  of the filter (sha256-v2)
//	-seed TEXT      public label of the filter, its bytes as they are
//	-list N         name at most N duplicates and N repeats, 0: all (20)
//	-json           one JSON object, for machines; it names all
//	-save FILE      write the snapshot of the known documents
//	-snapshot FILE  the known documents are those of a saved snapshot
//
// The filter's "no" makes a document definitely new. Its "maybe" makes it a
// candidate, no more: the bytes of the known documents then decide whether it
// is a duplicate or a false positive. Incoming documents that are not known
// can still be equal to each other. The first of them is unique, the others
// are repeats: decided by all their bytes too.
//
// In the JSON object (the type report), as in the text, these sums hold:
//
//	documents  = definitely_new + candidates
//	candidates = duplicates + false_positives
//	documents  = duplicates + repeats + unique
//
// In JSON, filter is a [bloom.Stats], and a name that is not UTF-8 has U+FFFD
// where it is not.
//
// Dedup deletes and changes nothing but the FILE of -save. Who deletes by its
// report should mind same_path: the incoming and the known tree may overlap,
// and then the duplicate of a known document is that document.
//
// The exit status is 0 for a report, with duplicates or without, 1 for an
// error and 2 for a wrong call. Unless it is 0, standard output gets nothing.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/b1cc2673/bloom"
)

const usage = `usage: dedup -known PATH [-known PATH …] [-save FILE] [flags] INCOMING …
       dedup -snapshot FILE [flags] INCOMING …`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, usage)
		o.flags.SetOutput(stderr)
		o.flags.PrintDefaults()
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "dedup: %v\n%s\n", err, usage)
		return 2
	}
	p := newProgress(stderr)
	r, err := dedup(o, p)
	p.clear()
	if err == nil {
		// In one piece at the end, so that there is no half report.
		var out []byte
		if out, err = o.print(r); err == nil {
			_, err = stdout.Write(out)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "dedup: %v\n", err)
		return 1
	}
	return 0
}

// Options are the command line.
type options struct {
	flags    *flag.FlagSet
	known    []string
	incoming []string
	lines    bool
	config   bloom.Config
	list     int
	json     bool
	save     string // "": not asked for
	snapshot string // "": not asked for
}

func parse(args []string) (*options, error) {
	o := &options{flags: flag.NewFlagSet("dedup", flag.ContinueOnError)}
	o.flags.SetOutput(io.Discard) // run prints errors, under the program's name
	o.flags.Func("known", "`path` of known documents, may be repeated", func(path string) error {
		o.known = append(o.known, path)
		return nil
	})
	o.flags.BoolVar(&o.lines, "lines", false, "a document is a line, not a file")
	o.flags.Float64Var(&o.config.FPRate, "rate", 0.01, "false-positive `rate` to build the filter for")
	o.flags.TextVar(&o.config.Protocol, "protocol", bloom.SHA256,
		"`name` of the protocol: sha256-v2, blake2b-v2, doc-membership-v1, esbloom-v1 or key-index-v1")
	o.flags.Func("seed", "public label of the filter, `text`", func(text string) error {
		o.config.Seed = []byte(text)
		return nil
	})
	o.flags.IntVar(&o.list, "list", 20, "name at most `n` duplicates and n repeats, 0: all")
	o.flags.BoolVar(&o.json, "json", false, "print one JSON object")
	o.flags.StringVar(&o.save, "save", "", "write the snapshot of the known documents to `file`")
	o.flags.StringVar(&o.snapshot, "snapshot", "", "`file` that -save wrote, in place of -known")
	if err := o.flags.Parse(args); err != nil {
		return o, err
	}
	var ofTheFile []string // what a saved snapshot has of its own
	o.flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "known", "rate", "protocol", "seed", "save":
			ofTheFile = append(ofTheFile, "-"+f.Name)
		}
	})
	o.incoming = o.flags.Args()
	// Resolving for no records is how a Config is checked before there are any.
	// It takes a rate of 0 for the default, which is not what -rate 0 says.
	_, err := o.config.Resolve(0)
	switch {
	case o.snapshot != "" && len(ofTheFile) > 0:
		return o, fmt.Errorf("%s and -snapshot exclude each other", ofTheFile[0])
	case o.snapshot == "" && len(o.known) == 0:
		return o, errors.New("no -known path and no -snapshot")
	case len(o.incoming) == 0 && o.save == "":
		return o, errors.New("no INCOMING path")
	case o.list < 0:
		return o, fmt.Errorf("-list %d: must not be negative", o.list)
	case o.config.FPRate == 0:
		return o, errors.New("-rate 0: must be above 0 and below 1")
	}
	return o, err
}

// A name says where a document was found.
type name struct {
	path string
	line int // from 1; 0: the whole file
}

func (n name) String() string {
	if n.line == 0 {
		return n.path
	}
	return n.path + ":" + strconv.Itoa(n.line)
}

// MarshalText makes a name a string in JSON.
func (n name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

type document struct {
	name name
	text []byte
}

// A corpus is one side: the known or the incoming documents.
type corpus struct {
	roots    []string
	lines    bool
	progress *progress

	read    map[string]bool // absolute paths, links resolved
	skipped int             // not regular files
}

// each reads the corpus in the order of its roots, a folder in the order of
// its names, and calls do once for every file with all its documents, until
// there is an error.
func (c *corpus) each(do func(documents []document) error) error {
	c.read = make(map[string]bool)
	for _, root := range c.roots {
		info, err := os.Stat(root)
		if err == nil && info.IsDir() {
			// With the separator, a link to a folder is walked like the folder.
			err = filepath.WalkDir(root+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return err
				case entry.Type().IsRegular():
					return c.file(path, do)
				case !entry.IsDir():
					c.skipped++
				}
				return nil
			})
		} else if err == nil {
			err = c.file(root, do)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolve tells files apart, whatever links lead to them; what cannot be
// resolved is told apart by its own text.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return filepath.Clean(path)
}

func (c *corpus) file(path string, do func(documents []document) error) error {
	if c.read[resolve(path)] {
		return nil
	}
	c.read[resolve(path)] = true
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	documents := []document{{name{path, 0}, text}}
	if c.lines {
		documents = make([]document, 0, bytes.Count(text, []byte("\n"))+1)
		for line := range bytes.Lines(text) { // parts of text: no copies
			documents = append(documents, document{name{path, len(documents) + 1}, bytes.TrimSuffix(line, []byte("\n"))})
		}
	}
	c.progress.add(len(documents))
	return do(documents)
}

func dedup(o *options, p *progress) (*report, error) {
	r := &report{Duplicates: []match{}, Repeats: []match{}} // not nil: [] in JSON
	knownCorpus := &corpus{roots: o.known, lines: o.lines, progress: p}
	known, names, err := r.known(o, knownCorpus)
	if err != nil {
		return nil, err
	}
	incoming := &corpus{roots: o.incoming, lines: o.lines, progress: p}
	var unknown [][]document // by file: growing one long slice would cost more than the lookups
	var texts [][]byte
	var results []bloom.Result
	err = incoming.each(func(documents []document) error {
		texts = texts[:0]
		for _, d := range documents {
			texts = append(texts, d.text)
		}
		results = append(results[:0], make([]bloom.Result, len(documents))...)
		if err := known.LookupBatch(texts, results); err != nil {
			return blame(known, documents, err)
		}
		samePath := len(documents) > 0 && knownCorpus.read[resolve(documents[0].name.path)]
		r.Incoming.Documents += len(documents)
		rest := documents[:0]
		for i, d := range documents {
			if results[i].MaybePresent {
				r.Incoming.Candidates++
			}
			if !results[i].Duplicate {
				rest = append(rest, d)
				continue
			}
			_, ordinal, err := known.LookupOrdinal(d.text)
			if err != nil {
				return fmt.Errorf("%v: %w", d.name, err)
			}
			r.Duplicates = append(r.Duplicates, match{d.name, names(ordinal)})
			if samePath {
				r.Incoming.SamePath++
			}
		}
		unknown = append(unknown, rest)
		return nil
	})
	if err != nil {
		return nil, err
	}
	n := &r.Incoming
	n.DefinitelyNew = n.Documents - n.Candidates
	n.Duplicates = len(r.Duplicates)
	n.FalsePositives = n.Candidates - n.Duplicates
	r.Skipped = knownCorpus.skipped + incoming.skipped
	return r, r.findRepeats(known, unknown)
}

// known opens or builds the snapshot of the known documents, and returns
// what names its records by ordinal.
func (r *report) known(o *options, c *corpus) (*bloom.Snapshot, func(ordinal uint64) name, error) {
	if o.snapshot == "" {
		s, names, err := r.build(o.config, c)
		if err == nil && o.save != "" {
			err = s.Save(o.save)
		}
		return s, func(ordinal uint64) name { return names[ordinal] }, err
	}
	s, err := bloom.Open(o.snapshot, bloom.OpenOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.snapshot, err)
	}
	if r.Filter, err = s.Stats(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.snapshot, err)
	}
	r.Known.Documents, r.Known.Distinct = int(s.Len()), s.Len()
	return s, func(ordinal uint64) name { return name{path: fmt.Sprintf("%s#%d", o.snapshot, ordinal)} }, nil
}

// build makes the snapshot of the known documents and the names of its
// records by ordinal.
func (r *report) build(cfg bloom.Config, c *corpus) (known *bloom.Snapshot, names []name, err error) {
	// The documents are kept until they have given their names to the records.
	var documents [][]document
	var last name
	var failed error // a sequence cannot return its error
	refused := errors.New("refused, and New says why")
	known, err = bloom.New(cfg, func(yield func([]byte) bool) {
		failed = c.each(func(more []document) error {
			documents = append(documents, more)
			r.Known.Documents += len(more)
			for _, d := range more {
				last = d.name
				if !yield(d.text) {
					return refused
				}
			}
			return nil
		})
	})
	switch {
	case failed != nil && failed != refused:
		return nil, nil, failed
	case errors.Is(err, bloom.ErrItem): // New stops at the record it refuses
		return nil, nil, fmt.Errorf("%v: %w", last, err)
	case err != nil:
		return nil, nil, fmt.Errorf("building the filter: %w", err)
	}
	if r.Filter, err = known.Stats(); err != nil {
		return nil, nil, err
	}
	r.Known.Distinct = r.Filter.Records
	names, err = nameRecords(known, documents, func(document, name) error { return nil })
	return known, names, err
}

// nameRecords gives each record the name of the first document that has its
// bytes, and calls again for every later one.
func nameRecords(s *bloom.Snapshot, documents [][]document, again func(d document, first name) error) ([]name, error) {
	names := make([]name, s.Len())
	for d := range all(documents) {
		result, ordinal, err := s.LookupOrdinal(d.text)
		switch {
		case err != nil:
		case !result.Duplicate:
			err = errors.New("missing from the snapshot that was built with it")
		case names[ordinal] == (name{}):
			names[ordinal] = d.name
		default:
			err = again(d, names[ordinal])
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", d.name, err)
		}
	}
	return names, nil
}

func all(files [][]document) iter.Seq[document] {
	return func(yield func(document) bool) {
		for _, documents := range files {
			for _, d := range documents {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// findRepeats compares the unknown documents with each other. A snapshot of
// them does it, with the default configuration whatever the known documents
// have: that admits every document that another protocol does, in any number.
func (r *report) findRepeats(known *bloom.Snapshot, unknown [][]document) error {
	s, err := bloom.New(bloom.Config{}, func(yield func([]byte) bool) {
		for d := range all(unknown) {
			if !yield(d.text) {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("comparing the new documents: %w", err)
	}
	falsePositives := r.Incoming.FalsePositives
	_, err = nameRecords(s, unknown, func(d document, first name) error {
		r.Repeats = append(r.Repeats, match{d.name, first})
		maybe, err := known.MaybePresent(d.text)
		if maybe {
			falsePositives--
		}
		return err
	})
	r.Incoming.Repeats = len(r.Repeats)
	r.Incoming.Unique = r.Incoming.DefinitelyNew + r.Incoming.FalsePositives - r.Incoming.Repeats
	if r.Incoming.Unique > 0 {
		rate := float64(falsePositives) / float64(r.Incoming.Unique)
		r.MeasuredFPRate = &rate
	}
	return err
}

// blame names the document that made a batch fail.
func blame(s *bloom.Snapshot, documents []document, err error) error {
	for _, d := range documents {
		if _, err := s.MaybePresent(d.text); err != nil {
			return fmt.Errorf("%v: %w", d.name, err)
		}
	}
	return err
}
