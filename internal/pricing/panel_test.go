package pricing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"assay/internal/money"
	"assay/internal/randtest"
)

// nobody is an operator who vouches for nothing.
func nobody(Voter, Diagnosis) bool { return false }

// panelOf makes a panel of n names, of which each voter asks the same times its
// factor.
func panelOf(n int, factors ...float64) *Panel {
	p := &Panel{}
	for i := range n {
		var b Ballot
		for v, f := range factors {
			b.Votes = append(b.Votes, Vote{Voter(v), money.Micro(float64(10_000*(i+1)) * f)})
		}
		p.Add(b)
	}
	return p
}

// everyone accuses so many voters.
func everyone(n int) []Voter {
	out := make([]Voter, n)
	for i := range out {
		out[i] = Voter(i)
	}
	return out
}

func TestPanel_TheMajorityDecidesAndWithoutOneNobody(t *testing.T) {
	const s, c = Skewed, Contested
	for _, tt := range []struct {
		rule    string
		names   int
		factors []float64
		want    []Illness
	}{
		{"alone", 300, []float64{100}, []Illness{""}},
		{"two agree", 300, []float64{1, 9}, []Illness{"", ""}},
		{"two disagree", 300, []float64{1, 100}, []Illness{c, c}},
		{"just beyond", 300, []float64{1, 10.01}, []Illness{c, c}},
		{"one of three", 300, []float64{1, 0.01, 1.2}, []Illness{"", s, ""}},
		{"one of three, at another place", 300, []float64{100, 1, 1.2}, []Illness{s, "", ""}},
		{"three levels", 300, []float64{1, 100, 10_000}, []Illness{c, c, c}},
		{"two of four", 300, []float64{1, 100, 100, 1}, []Illness{c, c, c, c}},
		{"two of five", 300, []float64{1, 100, 1, 100, 1}, []Illness{"", s, "", s, ""}},
		{"two of five, each in its own way", 300, []float64{1, 0.01, 1, 100, 1}, []Illness{"", s, "", s, ""}},
		{"most agree", 300, []float64{100, 100, 1}, []Illness{"", "", s}},
		{"two of five agree", 300, []float64{1, 1, 100, 100, 10_000}, []Illness{c, c, c, c, c}},
		{"enough names", 100, []float64{1, 100}, []Illness{c, c}},
		{"too few names to tell", 99, []float64{1, 100, 1}, []Illness{"", "", ""}},
	} {
		got := panelOf(tt.names, tt.factors...).Judge(everyone(len(tt.factors)), nil, nobody)
		for v, want := range tt.want {
			if got[Voter(v)].Illness != want {
				t.Errorf("%s: voter %d is %q, want %q", tt.rule, v, got[Voter(v)].Illness, want)
			}
		}
	}
}

func TestPanel_HonestMajorityIsNeverRefused(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(200, 5_000) {
		n := 2 + r.IntN(7)
		honest := n/2 + 1 + r.IntN(n-n/2)
		order := r.Perm(n) // the first of them are honest
		got, told := judgeRandom(r, n, order, honest)
		for _, v := range order[:honest] {
			if got[Voter(v)].Sick() {
				t.Fatalf("%d of %d honest, and voter %d is refused: %s\n%s", honest, n, v, got[Voter(v)], told)
			}
		}
		for _, v := range order[honest:] {
			if !got[Voter(v)].Sick() {
				t.Fatalf("%d of %d honest, and voter %d is believed\n%s", honest, n, v, told)
			}
		}
	}
}

// judgeRandom makes voters of whom some are honest, up to a factor of 1.6, and
// the others off by any factor that shows. Each leaves names out.
func judgeRandom(r *rand.Rand, n int, order []int, honest int) (map[Voter]Finding, string) {
	factors := make([]float64, n)
	for i, v := range order {
		if factors[v] = 1 + 0.6*r.Float64(); i < honest {
			continue
		}
		factors[v] *= []float64{0.0001, 0.01, 0.05, 20, 100, 1e6}[r.IntN(6)]
	}
	p := &Panel{}
	for range 400 {
		price := float64(1_000_000 + r.IntN(10_000_000))
		var b Ballot
		for _, v := range r.Perm(n) {
			if r.IntN(20) > 0 {
				b.Votes = append(b.Votes, Vote{Voter(v), money.Micro(price * factors[v])})
			}
		}
		p.Add(b)
	}
	return p.Judge(everyone(n), nil, nobody), fmt.Sprint(factors)
}

func TestPanel_OrderDecidesNothing(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(100, 2_000) {
		n := 2 + r.IntN(5)
		p := &Panel{}
		for range 300 {
			var b Ballot
			for v := range n {
				b.Votes = append(b.Votes, Vote{Voter(v), money.Micro(1 + r.Int64N(10_000)*int64(1+v*v*v))})
			}
			p.Add(b)
		}
		want := fmt.Sprint(p.Judge(everyone(n), nil, nobody))
		r.Shuffle(len(p.ballots), func(i, k int) { p.ballots[i], p.ballots[k] = p.ballots[k], p.ballots[i] })
		for _, b := range p.ballots {
			slices.Reverse(b.Votes)
		}
		accused := everyone(n)
		slices.Reverse(accused)
		if got := fmt.Sprint(p.Judge(accused, nil, nobody)); got != want {
			t.Fatalf("in another order %s, and %s before", got, want)
		}
	}
}

func TestPanel_WhatWasKnownCountsForTheMarketsThatAreNotHeard(t *testing.T) {
	known := func(markets int, former ...Voter) *Panel {
		p := panelOf(200, 1, 1, 100)
		p.Former = map[Voter]bool{}
		for _, v := range former {
			p.Former[v] = true
		}
		for i := range p.ballots {
			p.ballots[i].Known, p.ballots[i].Markets = p.ballots[i].Votes[2].Price, markets
		}
		return p
	}
	for _, tt := range []struct {
		rule    string
		p       *Panel
		accused []Voter
		mute    map[Voter]bool
		want    Illness // of voter 0
	}{
		{"known from five others", known(5), everyone(2), nil, Skewed},
		{"known from the third alone", known(1, 2), everyone(2), nil, Healthy},
		{"known from the third, which is not heard", known(1, 2), everyone(2), map[Voter]bool{2: true}, Healthy},
		{"and neither is the second", known(1, 2), everyone(1), map[Voter]bool{1: true, 2: true}, Contested},
		{"known from two, none heard", known(2, 2), everyone(1), map[Voter]bool{1: true, 2: true}, Skewed},
	} {
		if got := tt.p.Judge(tt.accused, tt.mute, nobody)[0]; got.Illness != tt.want {
			t.Errorf("%s: %+v, want %q", tt.rule, got, tt.want)
		}
	}
}

func TestPanel_ShowsWhoDisagreesAndByHowMuch(t *testing.T) {
	got := panelOf(300, 1, 100, 100, 1).Judge(everyone(4), nil, nobody)[1]
	if got.Ratio != 100*money.Scale || got.Shared != 300 || !slices.Equal(got.Rivals, []Voter{0, 3}) {
		t.Errorf("%+v", got)
	}
}

func TestPanel_WhoIsVouchedForStays(t *testing.T) {
	vouched := func(v Voter, _ Diagnosis) bool { return v == 1 }
	got := panelOf(300, 1, 100, 1).Judge(everyone(3), nil, vouched)
	if len(got) != 0 {
		t.Errorf("refused: %+v", got)
	}
	got = panelOf(300, 1, 100).Judge(everyone(2), nil, vouched)
	if got[0].Illness != Contested || got[1].Sick() {
		t.Errorf("of two: %+v", got)
	}
}

func TestNear_IsExactUpToTheGreatestAmount(t *testing.T) {
	for _, tt := range []struct {
		a, b money.Micro
		want bool
	}{{1, 1, true}, {1, 10, true}, {11, 1, false}, {109, 10, false}, {100, 10, true}, {maxPrice, maxPrice / 10, true}, {maxPrice, maxPrice/10 - 1, false}} {
		if near(tt.a, tt.b) != tt.want || near(tt.b, tt.a) != tt.want {
			t.Errorf("%d and %d: want %t", tt.a, tt.b, tt.want)
		}
	}
}
