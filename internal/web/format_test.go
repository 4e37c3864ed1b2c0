package web

import (
	"html"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/view"
)

func TestShortPrice_RoundsHalfToEven(t *testing.T) {
	for amount, want := range map[money.Micro]string{
		32_041_250:         "$32.04",
		1_438_000_000:      "$1,438.00",
		10_000_000_000_000: "$10,000,000.00",
		1_005_000:          "$1.00",
		1_015_000:          "$1.02",
		100_000:            "$0.10",
		99_950:             "$0.10",
		99_949:             "$0.0999",
		34_500:             "$0.0345",
		30_000:             "$0.03",
		1:                  "$0.00",
		-1_250_000:         "-$1.25",
		math.MaxInt64:      "$9,223,372,036,854.78",
		1 << 62:            "$4,611,686,018,427.39",
		999_995_000:        "$1,000.00",
		10_000:             "$0.01",
	} {
		if got := shortPrice(amount, "USD"); got != want {
			t.Errorf("amount %d: got %q, want %q", amount, got, want)
		}
	}
	if got := shortPrice(1_500_000, "CHF"); got != "CHF\u00a01.50" {
		t.Errorf("currency without a symbol: got %q, want CHF and the amount", got)
	}
}

func TestRelative_UsesLargestUnit(t *testing.T) {
	for age, want := range map[time.Duration]string{
		0: "just now", 4 * time.Second: "just now", 59 * time.Second: "59 s ago", 90 * time.Second: "1 min ago",
		47 * time.Hour: "47 h ago", 49 * time.Hour: "2 d ago", -30 * time.Second: "in 30 s", -3 * time.Hour: "in 3 h",
	} {
		if got := relative(age); got != want {
			t.Errorf("age %v: got %q, want %q", age, got, want)
		}
	}
}

func TestHumanDuration_UsesTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 200 * time.Millisecond: "200 ms", 1500 * time.Millisecond: "1.5 s", 48 * time.Second: "48 s",
		200 * time.Second: "3 min 20 s", time.Hour: "1 h", 90 * time.Minute: "1 h 30 min", 98 * time.Hour: "4 d 2 h",
	} {
		if got := humanDuration(d); got != want {
			t.Errorf("duration %v: got %q, want %q", d, got, want)
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

func TestMarkedName_KeepsBytes(t *testing.T) {
	for _, name := range trapNames {
		if got := html.UnescapeString(tags.ReplaceAllString(string(markedName(name)), "")); got != name {
			t.Errorf("markedName(%q): got the text %q, want the name", name, got)
		}
	}
}

func TestMarkedName_MarksInvisibleCharacters(t *testing.T) {
	for name, marks := range map[string]int{
		"AK-47 | Redline": 0, "★ Karambit": 0, "龍王 | 壱": 0,
		"a\nb": 1, "a ": 1, " a": 1, "a  b": 2, "a\tb\r": 2, "a\u202eb": 1, "a\u200bb\u00a0c": 2, " ": 1,
	} {
		if got := strings.Count(string(markedName(name)), "data-mark="); got != marks {
			t.Errorf("markedName(%q): got %d marks, want %d", name, got, marks)
		}
	}
}

func TestSegments_Widths(t *testing.T) {
	got := segments(8, part{"a", 1}, part{"b", 0}, part{"c", 3})
	want := []segment{{"c", "50.000%"}, {"b", "12.500%"}, {"a", "12.500%"}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("segment %d: got %v, want %v", i, got[i], want[i])
		}
	}
	if p := percent(1, 0); p != "0%" {
		t.Errorf("percent(1, 0) = %q, want 0%%", p)
	}
}

func TestAnnouncement_ChangesEveryTenPercent(t *testing.T) {
	texts := map[string]bool{}
	for done := range int64(1000) {
		job := view.Job{ID: "1", State: "running", TotalItems: 1000, PendingItems: 1000 - done, UpdatedItems: done}
		texts[newRunView(job, nil, time.Time{}).Announce] = true
	}
	if len(texts) != 10 {
		t.Errorf("got %d announcements, want 10", len(texts))
	}
}

func TestPlot_ExcludesFarPrices(t *testing.T) {
	quote := func(price money.Micro, used bool) quoteRow {
		return quoteRow{MarketSnapshot: view.MarketSnapshot{Price: &price, Used: used}}
	}
	p := newPlot([]quoteRow{quote(100, true), quote(200, true), quote(60, false), quote(9000, false)}, 150)
	if p.Min != 60 || p.Max != 200 || len(p.Dots) != 3 || len(p.Far) != 1 || p.Dots[0].X != "2.00%" || p.Dots[0].Used || p.Dots[2].X != "98.00%" {
		t.Errorf("got plot %+v, want the range 60 to 200, three dots and one far price", p)
	}
	for what, quotes := range map[string][]quoteRow{"none": nil, "one": {quote(100, true)}, "equal": {quote(100, true), quote(100, true)}} {
		if p := newPlot(quotes, 100); p != nil {
			t.Errorf("%s: got plot %+v, want none", what, p)
		}
	}
}

func TestFactor_RoundsToThreeOrTwoPlaces(t *testing.T) {
	for m, want := range map[money.Micro]string{1_024_328: "1.024×", 974_500: "0.974×", 1_000_000: "1.00×", 46_259_945: "46.26×", 1_234_567_890: "1,234.57×"} {
		if got := factor(&m); got.Short != want || got.Exact != m.String() {
			t.Errorf("factor of %s: got %q with %q, want %q", m, got.Short, got.Exact, want)
		}
	}
	if got := factor(nil); got.Known {
		t.Errorf("missing factor: got %+v, want an unknown one", got)
	}
}

func TestRequesterText_HasNoPrefix(t *testing.T) {
	for by, want := range map[string]string{
		"operator:ada": "ada", "key:shop": "API key shop", author: "page, with the admin token", "platform": "API, with the platform token",
		"schedule": "schedule", "missing-price queue": "missing-price queue",
	} {
		if got := requesterText(by); got != want {
			t.Errorf("requester %q: got %q, want %q", by, got, want)
		}
	}
}
