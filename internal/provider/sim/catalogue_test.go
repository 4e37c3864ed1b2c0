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

func TestCatalogue_HasAtLeast36000ValidDistinctNames(t *testing.T) {
	names := NewCatalogue().Names()
	if len(names) < 36_000 {
		t.Errorf("%d names, want 36,000 or more", len(names))
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if err := catalog.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if seen[name] {
			t.Errorf("%q is there twice", name)
		}
		seen[name] = true
	}
	for _, want := range []string{"★ Karambit", "AK-47 | Redline (Field-Tested)"} {
		if !seen[want] {
			t.Errorf("%q is missing", want)
		}
	}
	if seen["No Such Item | At All (Factory New)"] {
		t.Error("the item that does not exist is there")
	}
}

func TestCatalogue_IsAlwaysTheSame(t *testing.T) {
	if !slices.Equal(NewCatalogue().Names(), NewCatalogue().Names()) {
		t.Error("two catalogues differ")
	}
}

func TestCatalogue_HasTheProportionsOfTheRealOne(t *testing.T) {
	c := NewCatalogue()
	// Of each prefix, the number wanted; a tenth more or less will do.
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
			t.Errorf("%d names begin with %q, want about %d", n, prefix, want)
		}
	}
}

func TestCatalogue_ValuesSpreadAsRealAsksDo(t *testing.T) {
	c := NewCatalogue()
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
		t.Logf("p%d: %d cents", q.percent, got)
		if got < q.low || got > q.high {
			t.Errorf("p%d is %d cents, want %d-%d", q.percent, got, q.low, q.high)
		}
	}
}

func TestCatalogue_KeepsTheTrapNames(t *testing.T) {
	names := NewCatalogue().Names()
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
		t.Errorf("%d pairs differ only in case, want 5", pairs)
	}
	traps := map[string]func(string) bool{
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
		traps[string(c)] = func(s string) bool { return strings.ContainsRune(s, c) }
	}
	for what, has := range traps {
		if !slices.ContainsFunc(names, has) {
			t.Errorf("no name with %s", what)
		}
	}
	for _, name := range names {
		if strings.Contains(name, "StatTrak™ ★") {
			t.Errorf("%q has the star after StatTrak™", name)
		}
	}
}

func TestCatalogue_FindsEveryNameAndNoOther(t *testing.T) {
	base := NewCatalogue()
	for _, n := range []int{1, 3_000, base.Len(), base.Len() + 1, 2*base.Len() + 5} {
		c := base.resize(n)
		if c.Len() != n {
			t.Fatalf("resized to %d: has %d", n, c.Len())
		}
		for _, i := range []int{0, 1, n / 2, n - 1} {
			if i >= n {
				continue
			}
			if got, ok := c.find(c.name(i)); !ok || got != i {
				t.Errorf("of %d: find(%q) = %d, %v, want %d", n, c.name(i), got, ok, i)
			}
		}
		for _, name := range []string{
			"", "No Such Item | At All (Factory New)", base.name(0) + " ", base.name(0) + lotSuffix,
			base.name(0) + lotSuffix + "01", base.name(0) + lotSuffix + "+1", base.name(0) + lotSuffix + "0",
			base.name(0) + lotSuffix + "9", base.name(0) + lotSuffix + "-1",
		} {
			if i, ok := c.find(name); ok {
				t.Errorf("of %d: found %q at %d", n, name, i)
			}
		}
	}
}

func TestWriteNames_JSONComesBackByteForByte(t *testing.T) {
	var out bytes.Buffer
	if err := WriteNames(&out, true); err != nil {
		t.Fatal(err)
	}
	var got []string
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		name, err := jsontext.AppendUnquote(nil, lines.Bytes())
		if err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		got = append(got, string(name))
	}
	if !slices.Equal(got, NewCatalogue().Names()) {
		t.Error("the names written are not those of the catalogue")
	}
}

func TestWriteNames_PlainIsOneLineAName(t *testing.T) {
	var out bytes.Buffer
	if err := WriteNames(&out, false); err != nil {
		t.Fatal(err)
	}
	if got, want := bytes.Count(out.Bytes(), []byte("\n")), NewCatalogue().Len(); got != want {
		t.Errorf("%d lines for %d names", got, want)
	}
	if !strings.Contains(out.String(), `Taunt: The Long\nGoodbye`) {
		t.Error("a newline within a name is not escaped")
	}
}

func BenchmarkNewCatalogue(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewCatalogue()
	}
}
