package pricing

import (
	"math"
	"strings"
	"testing"

	"assay/internal/money"
)

// checkup compares n names whose prices were multiplied.
func checkup(n int, factor float64) *Checkup {
	var c Checkup
	for i := range n {
		price := float64(30_000 * (i + 1))
		c.Add(money.Micro(price), money.Micro(math.Round(price*factor)))
	}
	return &c
}

func TestCheckup_AgainstOwnLastAnswer(t *testing.T) {
	tests := []struct {
		rule          string
		factor        float64
		before, names int
		want          Illness
	}{
		{"unchanged", 1, 500, 500, Healthy},
		{"the fall of October 2025", 0.59, 500, 500, Healthy},
		{"halved", 0.5, 500, 500, Healthy},
		{"doubled", 2, 500, 500, Healthy},
		{"more than doubled", 2.0001, 500, 500, Skewed},
		{"less than halved", 0.4999, 500, 500, Skewed},
		{"cents for dollars", 100, 500, 500, Skewed},
		{"dollars for cents", 0.01, 500, 500, Skewed},
		{"yuan for dollars", 7.1, 500, 500, Skewed},
		{"dollars for yuan", 0.14, 500, 500, Skewed},
		{"half of the names", 1, 500, 250, Healthy},
		{"less than half", 1, 500, 249, Shrunk},
		{"nothing at all", 1, 1, 0, Shrunk},
		{"less than half of an odd number", 1, 501, 250, Shrunk},
		{"many more names", 1, 500, 50_000, Healthy},
		{"shrunk comes first", 100, 500, 100, Shrunk},
	}
	for _, tt := range tests {
		d := checkup(250, tt.factor).AgainstOwn(tt.before, tt.names)
		if d.Illness != tt.want || d.Sick() != (tt.want != Healthy) || d.Shared != 250 {
			t.Errorf("%s: %+v, want %q", tt.rule, d, tt.want)
		}
		if (d.String() == "") == d.Sick() {
			t.Errorf("%s: told as %q", tt.rule, d)
		}
	}
	if d := new(Checkup).AgainstOwn(500, 400); d.Sick() {
		t.Errorf("no shared name: %+v, want healthy", d)
	}
}

func TestCheckup_AnAnswerWithoutItsPricesIsSick(t *testing.T) {
	for _, c := range []struct {
		had, has int
		want     Illness
	}{
		{200, 200, Healthy}, {200, 100, Healthy}, {200, 99, Unpriced}, {200, 0, Unpriced}, {99, 0, Healthy}, {0, 200, Healthy},
	} {
		var k Checkup
		k.Count(c.had/2, 0)
		k.Count(c.had-c.had/2, c.has)
		d := k.AgainstOwn(500, 500)
		if d.Illness != c.want || (d.String() == "") == d.Sick() {
			t.Errorf("%d prices of %d: %+v, told as %q, want %q", c.has, c.had, d, d, c.want)
		}
	}
}

func TestCheckup_FirstAnswerAgainstOtherMarkets(t *testing.T) {
	tests := []struct {
		rule   string
		shared int
		factor float64
		want   Illness
	}{
		{"a cheap market", 100, 0.1, Healthy},
		{"a dear market", 100, 10, Healthy},
		{"cents for dollars", 100, 100, Skewed},
		{"dollars for cents", 100, 0.01, Skewed},
		{"just beyond", 100, 10.001, Skewed},
		{"just beyond", 100, 0.0999, Skewed},
		{"too few to tell", 99, 100, Healthy},
		{"none to tell", 0, 1, Healthy},
	}
	for _, tt := range tests {
		if d := checkup(tt.shared, tt.factor).AgainstOthers(); d.Illness != tt.want || d.Shared != tt.shared {
			t.Errorf("%s: %+v, want %q", tt.rule, d, tt.want)
		}
	}
}

func TestCheckup_MedianDecidesNotTheMean(t *testing.T) {
	c := checkup(51, 1)
	for range 50 {
		c.Add(1, maxPrice)
	}
	if d := c.AgainstOwn(101, 101); d.Sick() || d.Ratio != money.Scale {
		t.Errorf("50 of 101 names absurd: %+v", d)
	}
	c.Add(1, math.MaxInt64)
	c.Add(1, math.MaxInt64)
	c.Add(1, math.MaxInt64)
	if d := c.AgainstOwn(104, 104); d.Illness != Skewed || d.Ratio <= 0 {
		t.Errorf("53 of 104 names absurd: %+v", d)
	}
}

func TestCheckup_CountsOnlyNamesWithBothPrices(t *testing.T) {
	var c Checkup
	c.Add(0, 5)
	c.Add(5, 0)
	c.Add(-5, 5)
	c.Add(5, -5)
	c.Add(5, 5)
	if d := c.AgainstOthers(); d.Shared != 1 {
		t.Errorf("%d shared names, want 1", d.Shared)
	}
}

func TestDiagnosis_TellsOperatorsWhatIsWrong(t *testing.T) {
	if got := checkup(250, 1).AgainstOwn(500, 120).String(); got != "120 names, of 500 before" {
		t.Errorf("shrunk is told as %q", got)
	}
	if got := checkup(250, 100).AgainstOwn(500, 500).String(); !strings.HasPrefix(got, "prices are 100 times ") {
		t.Errorf("skewed is told as %q", got)
	}
}
