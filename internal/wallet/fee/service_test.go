package fee

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/wallet/wallettest"
)

// stored gives tests access to the versions of the fee rules in a database.
type stored struct {
	testing.TB
	*db.DB
}

// versions returns all versions, oldest first.
func (s stored) versions() []Activation {
	s.Helper()
	all, err := ListActivations(context.Background(), s.DB, 0, 1000)
	if err != nil {
		s.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

func newService(tb testing.TB, source Source) (*Service, stored) {
	tb.Helper()
	now := func() time.Time { return noon }
	d, err := db.Open(tb.Context(), db.Options{Path: filepath.Join(tb.TempDir(), "assay.db"), Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &Service{Store: d, Keys: wallettest.NewRing(tb, "k1"), Source: source, Now: now, Logger: slog.New(slog.DiscardHandler)}, stored{tb, d}
}

// fileOf returns a file source that contains text.
func fileOf(t *testing.T, text string) (source File, write func(string)) {
	t.Helper()
	source = File{filepath.Join(t.TempDir(), "fees.json")}
	write = func(text string) {
		t.Helper()
		if err := os.WriteFile(source.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	return source, write
}

func flat(points string) string { return `{"rules":[],"fallback":{"basisPoints":` + points + `}}` }

func kindOf(err error) fault.Kind {
	if f := fault.Of(err); f != nil {
		return f.Kind
	}
	return fault.Internal
}

func TestBegin_ActivatesTheSourceAsVersion1(t *testing.T) {
	source, write := fileOf(t, flat("300"))
	s, m := newService(t, source)
	if err := s.Begin(t.Context()); err != nil || len(m.versions()) != 1 || m.versions()[0].Source != source.Path {
		t.Fatalf("Begin: got error %v, versions %+v, want one version from the file", err, m.versions())
	}
	write(flat("900"))
	if err := s.Begin(t.Context()); err != nil || len(m.versions()) != 1 {
		t.Errorf("second start: got error %v, %d versions, want 1", err, len(m.versions()))
	}
}

func TestBegin_ActivatesTheBuiltInSetWithoutSource(t *testing.T) {
	wrong, _ := fileOf(t, `{}`)
	for name, source := range map[string]Source{"none": nil, "missing": File{"/does/not/exist"}, "wrong": wrong} {
		s, m := newService(t, source)
		if err := s.Begin(t.Context()); err != nil || len(m.versions()) != 1 || m.versions()[0].Source != "built-in" {
			t.Errorf("%s: got error %v, versions %+v, want one built-in version", name, err, m.versions())
		}
	}
}

func TestRefresh_ActivatesChangedRules(t *testing.T) {
	source, write := fileOf(t, flat("1000"))
	s, m := newService(t, source)
	ctx := t.Context()
	if err := s.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	refresh := func(r Request) (Result, error) { t.Helper(); return s.Refresh(ctx, r) }

	if got, err := refresh(Request{}); err != nil || got.Changed || got.Version != 1 || len(m.versions()) != 1 {
		t.Errorf("refresh of unchanged rules: got %+v, error %v, want no change", got, err)
	}
	write(`{"fallback":{"basisPoints":1000,"rounding":"up"},"rules":[{"id":"a","priority":1,"basisPoints":1001}]}`)
	want := Result{Version: 2, Previous: 1, Changed: true, Diff: Diff{Added: []string{"a"}, Removed: []string{}, Modified: []string{"fallback"}}}
	for _, dry := range []bool{true, false} {
		got, err := refresh(Request{DryRun: dry, By: "admin"})
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("dry run %t: error %v (-want +got):\n%s", dry, err, d)
		}
		if versions := map[bool]int{true: 1, false: 2}[dry]; len(m.versions()) != versions {
			t.Errorf("dry run %t: got %d versions, want %d", dry, len(m.versions()), versions)
		}
	}

	write(flat("1600"))
	_, err := refresh(Request{})
	if f := fault.Of(err); f == nil || f.Kind != fault.Conflict || f.Code != "large_fee_change" || len(f.Fields) == 0 || f.Fields[0].Pointer != "/fallback" {
		t.Errorf("large change: got error %v, want large_fee_change at /fallback", err)
	}
	if got, err := refresh(Request{DryRun: true}); err != nil || !got.Changed || len(got.Large) == 0 || len(m.versions()) != 2 {
		t.Errorf("dry run of a large change: got %+v, error %v, want the large changes and no new version", got, err)
	}
	for name, text := range map[string]string{"wrong": `{}`, "huge": strings.Repeat(" ", MaxBytes+1)} {
		write(text)
		if _, err := refresh(Request{AllowLarge: true}); kindOf(err) != fault.Unprocessable {
			t.Errorf("%s: got error %v, want an unprocessable fault", name, err)
		}
	}
	if err := os.Remove(source.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := refresh(Request{}); kindOf(err) != fault.Upstream || strings.Contains(err.Error(), source.Path) {
		t.Errorf("missing file: got error %v, want an upstream fault without the path", err)
	}
	if len(m.versions()) != 2 {
		t.Fatalf("got %d versions after refused refreshes, want 2", len(m.versions()))
	}
	write(flat("1600"))
	if got, err := refresh(Request{AllowLarge: true}); err != nil || got.Version != 3 || len(got.Large) == 0 || !cmp.Equal(got.Removed, []string{"a"}) {
		t.Errorf("allowed large change: got %+v, error %v, want version 3 without rule a", got, err)
	}
}

func TestRollback_ActivatesAnOldVersionAsTheNext(t *testing.T) {
	source, write := fileOf(t, flat("100"))
	s, m := newService(t, source)
	ctx := t.Context()
	if err := s.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	write(flat("900"))
	if _, err := s.Refresh(ctx, Request{AllowLarge: true}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Rollback(ctx, 1, Request{By: "admin"})
	if err != nil || got.Version != 3 || got.Previous != 2 || !got.Changed || m.versions()[2].Source != "version 1" {
		t.Errorf("Rollback: got %+v, error %v, want version 3 after 2, with the rules of version 1", got, err)
	}
	if got, err := s.Rollback(ctx, 1, Request{}); err != nil || got.Changed || len(m.versions()) != 3 {
		t.Errorf("second rollback: got %+v, error %v, want no change", got, err)
	}
	if _, err := s.Rollback(ctx, 9, Request{}); kindOf(err) != fault.NotFound {
		t.Errorf("rollback to an unknown version: got error %v, want a not-found fault", err)
	}
	p := Payment{Kind: Sale, Amount: 1000, Currency: "USD", At: noon}
	for version, fee := range map[int64]int64{0: 10, 1: 10, 2: 90, 3: 10} {
		if e, err := s.Quote(ctx, version, p); err != nil || e.Fee != fee || (version > 0 && e.Version != version) {
			t.Errorf("quote with version %d: got %+v, error %v, want the fee %d", version, e.Quote, err, fee)
		}
	}
}

func TestRefresh_ComparesWithAConcurrentActivation(t *testing.T) {
	source, write := fileOf(t, flat("1000"))
	s, m := newService(t, source)
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Refresh reads the clock between the comparison with version 1 and the transaction.
	faster := sync.OnceFunc(func() {
		if err := m.InTx(t.Context(), func(tx *db.Tx) error {
			return addRules(tx, Activation{Version: 2, Set: decode(t, flat("5000")), At: tx.Now()})
		}); err != nil {
			t.Error(err)
		}
	})
	s.Now = func() time.Time {
		faster()
		return noon
	}
	write(flat("1001"))
	if _, err := s.Refresh(t.Context(), Request{}); kindOf(err) != fault.Conflict || len(m.versions()) != 2 {
		t.Errorf("Refresh: got error %v, %d versions, want a large change relative to the concurrent activation", err, len(m.versions()))
	}
}

func TestLargeChanges_FindsChangesInEveryCondition(t *testing.T) {
	was := decode(t, `{"rules":[
		{"id":"card","priority":1,"conditions":{"kind":"deposit","paymentMethod":"card","currency":"EUR","country":["DE","AT"]},"basisPoints":140,"fixed":25,"minimum":30,"maximum":2000},
		{"id":"tiers","priority":2,"conditions":{"currency":"USD","kind":"sale"},"tiers":[{"from":0,"below":5000,"basisPoints":1000},{"from":5000,"basisPoints":800}]},
		{"id":"later","priority":3,"basisPoints":500,"effectiveFrom":"2027-01-01T00:00:00Z"}
		],"fallback":{"basisPoints":500}}`)
	text, _, err := was.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		old, new string
		large    bool
	}{
		"no change":                {`"priority":1,`, `"priority":1,`, false},
		"small change":             {`"basisPoints":140`, `"basisPoints":150`, false},
		"percentage":               {`"basisPoints":140`, `"basisPoints":220`, true},
		"fixed part":               {`"fixed":25`, `"fixed":60`, true},
		"minimum":                  {`"minimum":30`, `"minimum":300`, true},
		"maximum":                  {`"maximum":2000`, `"maximum":3001`, true},
		"all parts removed":        {`"basisPoints":140,"fixed":25,"minimum":30`, `"basisPoints":0`, true},
		"limit of a tier":          {`5000`, `9000`, false},
		"upper tier":               {`"basisPoints":800`, `"basisPoints":1301`, true},
		"upper tier, small change": {`"basisPoints":800`, `"basisPoints":1200`, false},
		"country removed":          {`["AT","DE"]`, `["AT"]`, true},
		"rule that starts later":   {`"priority":3,"basisPoints":500`, `"priority":3,"basisPoints":800`, true},
		"fallback":                 {`"fallback":{"basisPoints":500`, `"fallback":{"basisPoints":0`, true},
		"other priority, same fee": {`"priority":3,`, `"priority":4,`, false},
	} {
		next := decode(t, strings.ReplaceAll(string(text), c.old, c.new))
		if got := LargeChanges(was, next, noon); (len(got) > 0) != c.large {
			t.Errorf("%s: got %v, want large changes: %v", name, got, c.large)
		}
	}
}

func TestLargeChanges_LimitsItsTime(t *testing.T) {
	var everywhere []string
	for code := range strings.FieldsSeq(countries) {
		everywhere = append(everywhere, `"`+code+`"`)
	}
	rules := func(points string) string {
		var b strings.Builder
		for i := range MaxRules {
			if i > 0 {
				b.WriteByte(',')
			}
			id := fmt.Sprintf("r%d", i)
			fmt.Fprintf(&b, `{"id":%[1]q,"priority":%[2]d,"conditions":{"paymentMethod":%[1]q,"country":[%[3]s]},"basisPoints":%[4]s}`, id, i, strings.Join(everywhere, ","), points)
		}
		return `{"rules":[` + b.String() + `],"fallback":{"basisPoints":0}}`
	}
	begun := time.Now()
	got := LargeChanges(decode(t, rules("100")), decode(t, rules("300")), noon)
	if len(got) != maxLarge {
		t.Errorf("got %d changes, want %d", len(got), maxLarge)
	}
	t.Logf("LargeChanges took %s", time.Since(begun))
}
