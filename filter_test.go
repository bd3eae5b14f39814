package bloom

import (
	"context"
	"errors"
	"testing"
)

// The authority is asked after a "maybe" and only then; its "no" makes a
// false positive, its errors and a cancelled context come through.
func TestConfirm(t *testing.T) {
	s := mustNew(t, labConfig, labUniverse()[:4]...)
	f, err := s.Filter()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	holds := func(_ context.Context, item []byte) (bool, error) {
		asked++
		return string(item) <= "doc-03", nil
	}
	maybes := 0
	for i, item := range labUniverse() {
		before := asked
		r, err := f.Confirm(t.Context(), item, holds)
		if want := lookup(t, s, item); err != nil || r != want || (asked > before) != want.MaybePresent {
			t.Errorf("doc %d: %+v, %v, asked %d times, want %+v", i, r, err, asked-before, want)
		}
		if r.MaybePresent {
			maybes++
		}
	}
	if maybes != 9 || asked != 9 { // four members, five false positives
		t.Errorf("%d candidates, authority asked %d times, want 9", maybes, asked)
	}

	down := errors.New("database is down")
	r, err := f.Confirm(t.Context(), []byte("doc-00"), func(context.Context, []byte) (bool, error) { return true, down })
	if !errors.Is(err, down) || r != (Result{MaybePresent: true}) {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	asked = 0
	r, err = f.Confirm(ctx, []byte("doc-00"), holds)
	if !errors.Is(err, context.Canceled) || r != (Result{MaybePresent: true}) || asked != 0 {
		t.Errorf("%+v, %v, asked %d times", r, err, asked)
	}
	// A "no" needs nobody.
	if r, err := f.Confirm(ctx, []byte("doc-63"), holds); err != nil || r != (Result{}) {
		t.Errorf("%+v, %v", r, err)
	}
	// The context reaches the authority.
	type key struct{}
	ctx = context.WithValue(t.Context(), key{}, "value")
	f.Confirm(ctx, []byte("doc-00"), func(ctx context.Context, _ []byte) (bool, error) {
		if ctx.Value(key{}) != "value" {
			t.Error("another context")
		}
		return false, nil
	})
	if _, err := f.Confirm(ctx, repeat(65), holds); !errors.Is(err, ErrItem) {
		t.Error(err)
	}
	// A mistake shows at once, not at the first "maybe".
	if _, err := f.Confirm(ctx, []byte("doc-63"), nil); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
