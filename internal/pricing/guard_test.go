package pricing

import (
	"testing"
	"time"

	"assay/internal/money"
)

// same returns n quotes of one price.
func same(n int, price money.Micro) []Quote {
	prices := make([]money.Micro, n)
	for i := range prices {
		prices[i] = price
	}
	return asks(prices...)
}

func TestGuard_TellsWhatIsSuspect(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		rule    string
		markets int
		last    money.Micro
		age     time.Duration
		price   money.Micro
		want    Status
	}{
		{"doubled within a day", 4, 100, time.Hour, 200, OK},
		{"more than doubled within a day on few markets", 4, 100, time.Hour, 201, Suspect},
		{"a day is still within it", 4, 100, day, 201, Suspect},
		{"more than halved", 4, 201, time.Hour, 100, Suspect},
		{"halved", 4, 200, time.Hour, 100, OK},
		{"on five markets", 5, 100, time.Hour, 201, OK},
		{"in more than a day", 4, 100, day + time.Microsecond, 201, OK},
		{"tripled", 5, 100, time.Hour, 300, OK},
		{"more than tripled on any number", 12, 100, time.Hour, 301, Suspect},
		{"fell to less than a third", 12, 301, time.Hour, 100, Suspect},
		{"more than tripled, ever", 12, 100, 900 * day, 301, Suspect},
		{"the age is in the future", 4, 100, -9 * day, 201, Suspect},
		{"nothing to compare with", 4, 0, time.Hour, 1_000_000, OK},
		{"nonsense to compare with", 4, -100, time.Hour, 1_000_000, OK},
		{"the fall of October 2025", 3, 100, time.Hour, 59, OK},
	}
	for _, tt := range tests {
		e := estimate(usd(), same(tt.markets, tt.price), Last{Price: tt.last, UpdatedAt: noon.Add(-tt.age)})
		if e.Status != tt.want || e.Price != tt.price || e.Candidate != 0 {
			t.Errorf("%s: %s at %d, candidate %d; want %s, taken", tt.rule, e.Status, e.Price, e.Candidate, tt.want)
		}
	}
	e := estimate(usd(), same(4, 201), Last{Price: 100})
	if e.Status != Suspect {
		t.Errorf("of unknown age: %s, want suspect", e.Status)
	}
}

func TestGuard_CountsTheMarketsBehindTheEstimate(t *testing.T) {
	quotes := asks(201, 201, 201, 201, 9999) // five, of which one is an outlier
	if e := estimate(usd(), quotes, Last{Price: 100, UpdatedAt: noon}); e.Status != Suspect {
		t.Errorf("%s, want suspect", e.Status)
	}
}

func TestGuard_DisputedIsWorseThanSuspectAndThin(t *testing.T) {
	e := estimate(usd(), asks(1000, 9000), Last{Price: 100, UpdatedAt: noon})
	if e.Status != Disputed || e.Price != 100 || e.Candidate != 5000 {
		t.Errorf("%s at %d, candidate %d; want disputed, held", e.Status, e.Price, e.Candidate)
	}
}

func TestGuard_HoldsWhatIsThinAndSuspectAlways(t *testing.T) {
	last := Last{Price: 100, UpdatedAt: noon.Add(-time.Hour)}
	for _, tt := range []struct {
		guard   Guard
		markets int
		held    bool
	}{
		{Flag, 1, true},
		{Flag, 2, true},
		{Flag, 3, false},
		{Flag, 9, false},
		{Hold, 1, true},
		{Hold, 2, true},
		{Hold, 3, true},
		{Hold, 9, true},
	} {
		policy := usd()
		policy.Guard = tt.guard
		e := estimate(policy, same(tt.markets, 1000), last)
		held := e.Price == 100 && e.Candidate == 1000 && e.CandidateAt.Equal(noon)
		taken := e.Price == 1000 && e.Candidate == 0 && e.CandidateAt.IsZero()
		if held != tt.held || taken == tt.held || e.Status != Suspect || e.Estimated != 1000 {
			t.Errorf("%s with %d markets: %+v", tt.guard, tt.markets, e)
		}
	}
}

func TestGuard_ReleasesWhatASecondRunConfirms(t *testing.T) {
	tests := []struct {
		rule      string
		held      time.Duration // how long ago the candidate 1000 was held back
		price     money.Micro
		released  bool
		restarted bool // the wait begins again with the new price
	}{
		{"the same after 30 minutes", 30 * time.Minute, 1000, true, false},
		{"a day later", 24 * time.Hour, 1000, true, false},
		{"within 20 % above", time.Hour, 1200, true, false},
		{"within 20 % below", time.Hour, 800, true, false},
		{"too soon", 30*time.Minute - time.Microsecond, 1000, false, false},
		{"at once, again", 0, 1000, false, false},
		{"too far above", time.Hour, 1201, false, true},
		{"too far below", time.Hour, 799, false, true},
		{"too far and too soon", time.Minute, 5000, false, true},
		{"held back in the future: the clock was set back", -time.Hour, 1000, false, true},
	}
	for _, tt := range tests {
		at := noon.Add(-tt.held)
		policy := usd()
		policy.Guard = Hold
		e := estimate(policy, same(4, tt.price), Last{Price: 100, UpdatedAt: noon.Add(-time.Hour), Candidate: 1000, CandidateAt: at})
		want := Estimate{Price: 100, Status: Suspect, Candidate: 1000, CandidateAt: at}
		switch {
		case tt.released:
			want = Estimate{Price: tt.price, Status: OK}
		case tt.restarted:
			want.Candidate, want.CandidateAt = tt.price, noon
		}
		if e.Price != want.Price || e.Status != want.Status || e.Candidate != want.Candidate || !e.CandidateAt.Equal(want.CandidateAt) {
			t.Errorf("%s: %d, %s, candidate %d at %v; want %d, %s, %d, %v", tt.rule,
				e.Price, e.Status, e.Candidate, e.CandidateAt, want.Price, want.Status, want.Candidate, want.CandidateAt)
		}
	}
}

func TestGuard_ForgetsTheCandidateOnceNothingIsSuspect(t *testing.T) {
	e := estimate(usd(), same(2, 110), Last{Price: 100, UpdatedAt: noon, Candidate: 1000, CandidateAt: noon.Add(-time.Minute)})
	if e.Price != 110 || e.Candidate != 0 || !e.CandidateAt.IsZero() || e.Status != Thin {
		t.Errorf("%+v", e)
	}
}

func TestGuard_ALoneAbsurdAskNeedsTwoRuns(t *testing.T) {
	estimator := New(usd())
	var e Estimate
	last := Last{Price: 30_000, UpdatedAt: noon.Add(-6 * time.Hour)}
	run := func(now time.Time, price money.Micro) {
		quotes := same(1, price)
		quotes[0].FetchedAt = now
		estimator.Estimate(now, quotes, last, &e)
		if e.Price == e.Estimated {
			last.UpdatedAt = now
		}
		last.Price, last.Candidate, last.CandidateAt = e.Price, e.Candidate, e.CandidateAt
	}
	run(noon, 1_438_168_000)
	if e.Price != 30_000 {
		t.Fatalf("a lone absurd ask became the price: %s", e.Price)
	}
	run(noon.Add(6*time.Hour), 31_000)
	if e.Price != 31_000 || e.Candidate != 0 {
		t.Fatalf("the honest ask after it: %s, candidate %s", e.Price, e.Candidate)
	}
	run(noon.Add(12*time.Hour), 100_000)
	run(noon.Add(18*time.Hour), 105_000)
	if e.Price != 105_000 || e.Status != Thin {
		t.Fatalf("a real move, confirmed: %s, %s", e.Price, e.Status)
	}
}

func TestEstimate_KeepsTheLastPriceWithoutQuotes(t *testing.T) {
	stale := asks(500)
	stale[0].FetchedAt = noon.Add(-25 * time.Hour)
	for _, quotes := range [][]Quote{nil, asks(0), asks(-1), stale} {
		e := estimate(usd(), quotes, Last{Price: 100, UpdatedAt: noon, Candidate: 700, CandidateAt: noon})
		if e.Status != Stale || e.Price != 100 || e.Estimated != 0 || e.Candidate != 700 || !e.CandidateAt.Equal(noon) {
			t.Errorf("with a last price: %+v", e)
		}
		for _, none := range []money.Micro{0, -100} {
			if e = estimate(usd(), quotes, Last{Price: none}); e.Status != NoPrice || e.Price != 0 || e.Candidate != 0 {
				t.Errorf("without one: %+v", e)
			}
		}
	}
}
