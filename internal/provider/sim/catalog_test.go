package sim

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
)

func TestCatalog_HasAtLeast36000ValidDistinctNames(t *testing.T) {
	names := NewCatalog().Names()
	if len(names) < 36_000 {
		t.Errorf("got %d names, want 36,000 or more", len(names))
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if err := catalog.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
		if seen[name] {
			t.Errorf("got the name %q twice, want once", name)
		}
		seen[name] = true
	}
	for _, want := range []string{"★ Karambit", "AK-47 | Redline (Field-Tested)"} {
		if !seen[want] {
			t.Errorf("got no name %q, want it in the catalog", want)
		}
	}
	if seen["No Such Item | At All (Factory New)"] {
		t.Error("got the name that tests use as an unknown name in the catalog, want it missing")
	}
}

func TestCatalog_IsDeterministic(t *testing.T) {
	if !slices.Equal(NewCatalog().Names(), NewCatalog().Names()) {
		t.Error("second call of NewCatalog: got different names, want the same names")
	}
}

func TestCatalog_HasRealisticProportions(t *testing.T) {
	c := NewCatalog()
	// The expected number of names by prefix, ±10 %.
	wants := map[string]int{
		"Sticker | ": 10_088, "Sticker Slab | ": 7_515, "★ ": 3_868, "StatTrak™ ": 3_279, "Souvenir ": 3_144,
		"Sealed Graffiti | ": 1_812, "Souvenir Charm | ": 902, "Patch | ": 114, "Charm | ": 78, "Music Kit | ": 95,
	}
	for prefix, want := range wants {
		n := 0
		for _, name := range c.Names() {
			if strings.HasPrefix(name, prefix) {
				n++
			}
		}
		if n < want*9/10 || n > want*11/10 {
			t.Errorf("got %d names with prefix %q, want %d ±10 %%", n, prefix, want)
		}
	}
}

func TestCatalog_HasRealisticValues(t *testing.T) {
	c := NewCatalog()
	values := make([]int32, 0, len(c.items))
	for _, it := range c.items {
		values = append(values, it.value)
	}
	slices.Sort(values)
	for _, q := range []struct {
		percent   int
		low, high int32 // cents
	}{{0, 3, 3}, {10, 6, 25}, {50, 280, 560}, {75, 2_400, 4_800}, {99, 90_000, 180_000}, {100, 180_000, 210_000}} {
		got := values[(len(values)-1)*q.percent/100] / 10
		t.Logf("percentile %d: %d cents", q.percent, got)
		if got < q.low || got > q.high {
			t.Errorf("percentile %d: got %d cents, want %d-%d", q.percent, got, q.low, q.high)
		}
	}
}

func TestCatalog_ContainsUnusualNames(t *testing.T) {
	names := NewCatalog().Names()
	lower := map[string]int{}
	for _, name := range names {
		lower[strings.ToLower(name)]++
	}
	pairs := 0
	for _, n := range lower {
		if n > 1 {
			pairs++
		}
	}
	if pairs != 5 {
		t.Errorf("got %d pairs of names that differ only in case, want 5", pairs)
	}
	unusual := map[string]func(string) bool{
		"double space":   func(s string) bool { return strings.Contains(s, "  ") },
		"trailing space": func(s string) bool { return strings.HasSuffix(s, " ") },
		"newline":        func(s string) bool { return strings.Contains(s, "\n") },
		"leading #":      func(s string) bool { return strings.HasPrefix(s, "#") },
		"leading '":      func(s string) bool { return strings.HasPrefix(s, "'") },
		"vanilla knife":  func(s string) bool { return strings.HasPrefix(s, "★") && !strings.Contains(s, "|") },
		"%2F":            func(s string) bool { return strings.Contains(s, "%2F") },
		"&lt;":           func(s string) bool { return strings.Contains(s, "&lt;") },
		"壱":              func(s string) bool { return strings.Contains(s, "壱") },
		"弐":              func(s string) bool { return strings.Contains(s, "弐") },
		"♥":              func(s string) bool { return strings.Contains(s, "♥") },
		"龍":              func(s string) bool { return strings.Contains(s, "龍") },
	}
	for _, c := range `&+?@$*~%<"/` {
		unusual[string(c)] = func(s string) bool { return strings.ContainsRune(s, c) }
	}
	for what, matches := range unusual {
		if !slices.ContainsFunc(names, matches) {
			t.Errorf("got no name with %s, want at least one", what)
		}
	}
	for _, name := range names {
		if strings.Contains(name, "StatTrak™ ★") {
			t.Errorf("name %q: got ★ after StatTrak™, want it first", name)
		}
	}
}

func TestCatalog_FindsOnlyItsNames(t *testing.T) {
	base := NewCatalog()
	for _, n := range []int{1, 3_000, base.Len(), base.Len() + 1, 2*base.Len() + 5} {
		c := base.resize(n)
		if c.Len() != n {
			t.Fatalf("resize(%d): got %d names, want %d", n, c.Len(), n)
		}
		for _, i := range []int{0, 1, n / 2, n - 1} {
			if i >= n {
				continue
			}
			if got, ok := c.find(c.name(i)); !ok || got != i {
				t.Errorf("catalog of %d names: find(%q) = %d, %v, want %d", n, c.name(i), got, ok, i)
			}
		}
		for _, name := range []string{
			"", "No Such Item | At All (Factory New)", base.name(0) + " ", base.name(0) + lotSuffix,
			base.name(0) + lotSuffix + "01", base.name(0) + lotSuffix + "+1", base.name(0) + lotSuffix + "0",
			base.name(0) + lotSuffix + "9", base.name(0) + lotSuffix + "-1",
		} {
			if i, ok := c.find(name); ok {
				t.Errorf("catalog of %d names: find(%q) = %d, want not found", n, name, i)
			}
		}
	}
}

func TestWriteNames_JSONPreservesNames(t *testing.T) {
	var out bytes.Buffer
	if err := WriteNames(&out, true); err != nil {
		t.Fatal(err)
	}
	var got []string
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		name, err := jsontext.AppendUnquote(nil, lines.Bytes())
		if err != nil {
			t.Fatalf("line %q: got error %v, want a JSON string", lines.Text(), err)
		}
		got = append(got, string(name))
	}
	if !slices.Equal(got, NewCatalog().Names()) {
		t.Errorf("got %d names that differ from those of the catalog, want the same", len(got))
	}
}

func TestWriteNames_PlainHasOneLinePerName(t *testing.T) {
	var out bytes.Buffer
	if err := WriteNames(&out, false); err != nil {
		t.Fatal(err)
	}
	if got, want := bytes.Count(out.Bytes(), []byte("\n")), NewCatalog().Len(); got != want {
		t.Errorf("got %d lines, want %d", got, want)
	}
	if !strings.Contains(out.String(), `Taunt: The Long\nGoodbye`) {
		t.Error("got a newline within a name, want it escaped")
	}
}

func BenchmarkNewCatalog(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewCatalog()
	}
}
