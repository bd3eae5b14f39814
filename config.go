package bloom

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// A Protocol names the rule that turns an item into bit positions (SPEC.md,
// section 2). The zero value is [SHA256]. The numbers of these constants are
// a matter of this package alone: text and files hold a protocol's name or
// its pinned number.
type Protocol uint8

const (
	SHA256          Protocol = iota // "sha256-v2", the default
	BLAKE2b                         // "blake2b-v2", optional secret key
	DocMembershipV1                 // "doc-membership-v1"
	ESBloomV1                       // "esbloom-v1"
	KeyIndexV1                      // "key-index-v1"
)

// Config says how a snapshot is to be built, or how the positions of an item
// are to be computed. The zero value is good for [New]: sha256-v2, one false
// positive in a hundred. A value outside the protocol's limits (SPEC.md,
// section 2) is an error, never rounded or ignored.
//
// Printing a Config with fmt, encoding/json or log/slog shows whether there
// is a Key but never the key. Two things package fmt prints without asking the
// type: unexported fields, so that a struct that keeps a Config in one needs a
// Format method of its own; and operands of verbs that it rejects, %w and %p,
// which go vet reports. Other encoders, such as gob and xml, write the key. A
// Config that went through JSON comes back with an empty key in its place,
// which every function refuses.
type Config struct {
	Protocol Protocol
	Bits     uint64  // m; 0: sized from FPRate and the number of distinct records
	Hashes   int     // k; 0: the best k for Bits
	FPRate   float64 // used when Bits is 0; 0 means 0.01
	Seed     []byte  // public label for reproducibility, never a secret
	Key      []byte  // secret, BLAKE2b only; nil: none; empty but not nil: an error
}

// Errors that a caller can test for with [errors.Is]. What is returned wraps
// one of them and says which value met which limit; or it wraps the error of a
// reader, a writer, a context or the file system.
var (
	ErrConfig   = errors.New("bloom: invalid configuration") // a value in a Config, or an argument of a formula, is outside its limits
	ErrItem     = errors.New("bloom: invalid item")          // the protocol does not admit this item, record or digest
	ErrCorrupt  = errors.New("bloom: corrupt data")          // bytes are not what was written
	ErrVersion  = errors.New("bloom: unknown format")        // not a snapshot, or of a later format or protocol
	ErrKey      = errors.New("bloom: key refused")           // a key is wrong, missing or superfluous
	ErrTooLarge = errors.New("bloom: too large")             // a documented or asked limit on size would be passed
	ErrClosed   = errors.New("bloom: not open")              // closed, nil or never built; a Builder that has ended
)

// A keyError is a Config.Key outside the protocol's limits: to a caller both
// a bad configuration and a bad key.
type keyError struct{ error }

func (keyError) Unwrap() []error { return []error{ErrConfig, ErrKey} }

func keyErrorf(format string, args ...any) error {
	return keyError{fmt.Errorf(ErrConfig.Error()+": "+format, args...)}
}

// secret stands for a key wherever a value is printed.
func (c Config) secret() string {
	switch {
	case c.Key == nil:
		return "none"
	case len(c.Key) == 0:
		return "empty"
	}
	return "secret"
}

// String shows all fields but the key.
func (c Config) String() string {
	return fmt.Sprintf("{Protocol:%v Bits:%d Hashes:%d FPRate:%v Seed:%x Key:%s}",
		c.Protocol, c.Bits, c.Hashes, c.FPRate, c.Seed, c.secret())
}

// Format prints String's text under every verb that fmt asks it for.
func (c Config) Format(f fmt.State, verb rune) { fmt.Fprint(f, c.String()) }

// LogValue implements [slog.LogValuer] without the key.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("protocol", fmt.Sprint(c.Protocol)),
		slog.Uint64("bits", c.Bits),
		slog.Int("hashes", c.Hashes),
		slog.Float64("fprate", c.FPRate),
		slog.String("seed", hex.EncodeToString(c.Seed)),
		slog.String("key", c.secret()))
}

// MarshalJSON writes the fields under their own names, a key as an empty one.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	if c.Key != nil {
		c.Key = []byte{}
	}
	return json.Marshal(plain(c))
}
