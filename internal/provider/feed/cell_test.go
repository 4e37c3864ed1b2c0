package feed

import (
	"testing"
	"time"

	"assay/internal/money"
)

func number(text string) Cell { return Cell{Kind: Number, Text: []byte(text)} }

func text(text string) Cell { return Cell{Kind: Text, Text: []byte(text)} }

func TestAmount_SeparatesMissingFromInvalid(t *testing.T) {
	for _, c := range []struct {
		cell   Cell
		unit   int64
		want   money.Micro
		reason string
	}{
		{Cell{}, 1, 0, ""},
		{Cell{Kind: Null}, 1, 0, ""},
		{text(""), 1, 0, ""},
		{text("null"), 1, 0, ""},
		{number("0"), 1, 0, ""},
		{number("0.0"), 1, 0, ""},
		{text("0"), 100, 0, ""},
		{number("-1"), 1, 0, ""},
		{number("-1"), 100, 0, ""},
		{number("26.914"), 1, 26_914_000, ""},
		{text("26.914"), 1, 26_914_000, ""},
		{text("0.004"), 1, 4000, ""},
		{number("2710"), 100, 27_100_000, ""},
		{number("26350"), 1000, 26_350_000, ""},
		{number("21"), 1000, 21_000, ""},
		{number("1e3"), 1000, 1_000_000, ""},
		{number("-2"), 1, 0, RejectNegative},
		{text("-0.5"), 1, 0, RejectNegative},
		{number("1e400"), 1, 0, RejectRange},
		{number("92233720368547758070"), 1, 0, RejectRange},
		{text("1,234.56"), 1, 0, RejectSyntax},
		{text("$5"), 1, 0, RejectSyntax},
		{text("NaN"), 1, 0, RejectSyntax},
		{text(" 5"), 1, 0, RejectSyntax},
		{Cell{Kind: Other, Text: []byte("true")}, 1, 0, RejectSyntax},
		{Cell{Kind: Other, Text: []byte("{}")}, 1, 0, RejectSyntax},
	} {
		if got, reason := c.cell.Amount(c.unit); got != c.want || reason != c.reason {
			t.Errorf("Amount of %q in 1/%d: got %d, %q; want %d, %q", c.cell.Text, c.unit, got, reason, c.want, c.reason)
		}
	}
}

func TestCount_SeparatesUnknownFromInvalid(t *testing.T) {
	for _, c := range []struct {
		cell   Cell
		want   int64
		reason string
	}{
		{Cell{}, -1, ""},
		{Cell{Kind: Null}, -1, ""},
		{text(""), -1, ""},
		{number("-1"), -1, ""},
		{number("0"), 0, ""},
		{number("512"), 512, ""},
		{text("512"), 512, ""},
		{number("1e3"), 1000, ""},
		{text("9000000000000"), 9_000_000_000_000, ""},
		{number("1.5"), 0, RejectCount},
		{number("-2"), 0, RejectCount},
		{text("many"), 0, RejectCount},
		{text("3,990"), 0, RejectCount},
		{number("9223372036854775807"), 0, RejectCount},
		{Cell{Kind: Other, Text: []byte("[]")}, 0, RejectCount},
	} {
		if got, reason := c.cell.Count(); got != c.want || reason != c.reason {
			t.Errorf("Count of %q: got %d, %q; want %d, %q", c.cell.Text, got, reason, c.want, c.reason)
		}
	}
}

func TestTime_ReadsEveryFormat(t *testing.T) {
	at := time.Date(2025, 11, 21, 2, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		cell   Cell
		format string
		want   time.Time
		reason string
	}{
		{Cell{}, TimeUnix, time.Time{}, ""},
		{number("0"), TimeUnix, time.Time{}, ""},
		{text(""), TimeRFC3339, time.Time{}, ""},
		{number("1763690400"), TimeUnix, at, ""},
		{text("1763690400"), TimeUnix, at, ""},
		{number("1763690400.5"), TimeUnix, at.Add(time.Second / 2), ""},
		{number("1763690400000"), TimeUnixMs, at, ""},
		{number("1763690400"), TimeAuto, at, ""},
		{number("1763690400000"), TimeAuto, at, ""},
		{text("2025-11-21T03:00:00+01:00"), TimeRFC3339, at, ""},
		{text("2025-11-21T02:00:00Z"), TimeAuto, at, ""},
		{text("2025-11-21"), TimeDate, at.Add(-2 * time.Hour), ""},
		{text("2025-11-21"), TimeAuto, at.Add(-2 * time.Hour), ""},
		{text("21.11.2025 02:00"), "02.01.2006 15:04", at, ""},
		{number("1763690400000"), TimeUnix, time.Time{}, RejectTime},
		{number("1763690400"), TimeUnixMs, time.Time{}, RejectTime},
		{number("-5"), TimeUnix, time.Time{}, RejectTime},
		{text("soon"), TimeAuto, time.Time{}, RejectTime},
		{text("1999-12-31"), TimeDate, time.Time{}, RejectTime},
		{Cell{Kind: Other, Text: []byte("true")}, TimeUnix, time.Time{}, RejectTime},
	} {
		if got, reason := c.cell.Time(c.format); !got.Equal(c.want) || reason != c.reason {
			t.Errorf("Time of %q as %s: got %v, %q; want %v, %q", c.cell.Text, c.format, got, reason, c.want, c.reason)
		}
	}
}

func TestPhase_IsFoundInNamesAndPaints(t *testing.T) {
	for name, want := range map[string][2]string{
		"★ Karambit | Doppler (Factory New) - Ruby":    {"★ Karambit | Doppler (Factory New)", "Ruby"},
		"★ Karambit | Doppler (Factory New) - Phase 4": {"★ Karambit | Doppler (Factory New)", "Phase 4"},
		"★ Karambit | Doppler (Factory New) - Phase 5": {"★ Karambit | Doppler (Factory New) - Phase 5", ""},
		"Sticker | Ruby":  {"Sticker | Ruby", ""},
		"Sticker - Ruby ": {"Sticker - Ruby ", ""},
	} {
		if rest, phase := CutSuffix(name); rest != want[0] || phase != want[1] {
			t.Errorf("CutSuffix(%q) = %q, %q; want the phase %q", name, rest, phase, want)
		}
	}
	if rest, phase := CutInfix("★ Bowie Knife | Doppler Black Pearl (Factory New)"); rest != "★ Bowie Knife | Doppler (Factory New)" || phase != "Black Pearl" {
		t.Errorf("CutInfix with a phase: got %q, %q, want the phase cut out of the name", rest, phase)
	}
	if rest, phase := CutInfix("★ Bowie Knife | Doppler (Factory New)"); rest != "★ Bowie Knife | Doppler (Factory New)" || phase != "" {
		t.Errorf("CutInfix without a phase: got %q, %q, want the unchanged name", rest, phase)
	}
	for index, want := range map[string]string{
		"415": "Ruby", "418": "Phase 1", "420": "Phase 3", "568": "Emerald", "619": "Sapphire", "617": "Black Pearl", "1123": "Phase 4", "": "", "44": "", "0415": "",
	} {
		if got := PhaseOfPaint([]byte(index)); got != want || Phase([]byte(want)) != want {
			t.Errorf("PhaseOfPaint(%q) = %q, want %q", index, got, want)
		}
	}
	if Phase([]byte("ruby")) != "" || Phase([]byte("Phase 2 ")) != "" {
		t.Error("another spelling of a phase: got a phase, want none")
	}
}
