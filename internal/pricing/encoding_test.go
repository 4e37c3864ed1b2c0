package pricing

import (
	"bytes"
	"encoding"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/randtest"
)

func anyTime(r *rand.Rand) time.Time {
	if r.IntN(3) == 0 {
		return time.Time{}
	}
	return time.UnixMicro(1 + r.Int64N(2e15)).UTC()
}

func anyState(r *rand.Rand) ValidationState {
	s := ValidationState{
		Level: Log(r.Int64N(1e8)) - 5e7, Levelled: r.IntN(2) == 0, ChangedAt: anyTime(r), MarketMovedUntil: anyTime(r),
		RefusedSince: anyTime(r), AcceptedAt: anyTime(r),
	}
	for range r.IntN(keptDispersions + 1) {
		s.Dispersions = append(s.Dispersions, money.Micro(r.IntN(money.Scale+1)))
	}
	if r.IntN(2) == 0 {
		s.Refused = Refusal{
			Anomaly: anomalies()[1+r.IntN(len(anomalies())-1)], Names: r.IntN(1e6), Before: r.IntN(1e6), Value: anyPrice(r),
			Low: anyPrice(r), High: anyPrice(r), At: anyTime(r), Rival: r.Int64(),
		}
	}
	return s
}

func TestEncodings_DecodeToTheSameValue(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(2_000, 100_000) {
		set := anySet(r, r.IntN(6), false)
		for i := range set.Markets {
			set.Markets[i].Late, set.Markets[i].Repeats = r.IntN(2) == 0, r.Int64N(9)
			set.Markets[i].ChangedAt, set.Markets[i].MarketMovedUntil = anyTime(r), anyTime(r)
		}
		state := anyState(r)
		movers := Movers(nil)
		key := uint64(0)
		for range r.IntN(20) {
			key += 1 + r.Uint64N(1e9)
			movers = append(movers, Mover{key, r.Int64N(100), Log(r.Int64N(1e8)) - 5e7})
		}
		checkRoundTrip(t, set, new(Set))
		checkRoundTrip(t, &state, new(ValidationState))
		if len(movers) > 0 {
			checkRoundTrip(t, &movers, new(Movers))
		}
		if b, _ := state.MarshalBinary(); len(b) > 160 {
			t.Fatalf("encoded state: got %d bytes, want at most 160", len(b))
		}
	}
}

// checkRoundTrip encodes v, decodes it into back and compares both.
func checkRoundTrip(t *testing.T, v encoding.BinaryMarshaler, back encoding.BinaryUnmarshaler) {
	t.Helper()
	b, err := v.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatalf("decode %+v: got %v, want nil", v, err)
	}
	if !reflect.DeepEqual(any(v), any(back)) {
		t.Fatalf("decoded value: got %+v, want %+v", back, v)
	}
}

func TestHistory_KeepsGoodResponsesOfEightDays(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20, 1_000) {
		var h History
		type kept struct {
			at     time.Time
			prices map[uint64]money.Micro
		}
		var all []kept
		now := noon
		prices := map[uint64]money.Micro{}
		for range 60 {
			for range 5 {
				prices[uint64(r.IntN(40))*(1+r.Uint64N(3))] = money.Micro(r.IntN(3)) * cent * money.Micro(r.IntN(1e6))
			}
			resp := &Response{At: now, Rate: money.RateScale}
			k := kept{now, map[uint64]money.Micro{}}
			for key, p := range prices {
				if p > 0 {
					resp.Points = append(resp.Points, Point{Key: key, Amount: p})
					k.prices[key] = p
				}
			}
			resp.Normalize()
			before := h
			var err error
			if h, err = h.Append(resp); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, h) {
				all = append(all, k)
			}
			now = now.Add(time.Duration(1+r.IntN(12)) * time.Hour)
		}
		slots, d, err := h.slots()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]map[uint64]money.Micro, len(slots))
		for i := range got {
			got[i] = map[uint64]money.Micro{}
		}
		if err := d.each(len(slots), func(key uint64, amounts []money.Micro) {
			for i, a := range amounts {
				if a > 0 {
					got[i][key] = a
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		for i, s := range slots {
			found := false
			for _, k := range all {
				if k.at.Equal(s.at) {
					found = true
					if !reflect.DeepEqual(k.prices, got[i]) {
						t.Fatalf("slot at %s: got %v, want %v", s.at, got[i], k.prices)
					}
				}
			}
			if !found {
				t.Fatalf("got a slot at %s, want slots at times of responses only", s.at)
			}
		}
		last := slots[len(slots)-1].at
		if len(slots) > historySlots || last.Sub(slots[0].at) > maxHistoryAge || last.Sub(slots[0].at) < 7*24*time.Hour {
			t.Fatalf("got %d slots over %s, want at most %d over 7 to 8.5 days", len(slots), last.Sub(slots[0].at), historySlots)
		}
	}
}

func TestHistory_KeepsNamesMissingInAPartialResponse(t *testing.T) {
	full := &Response{At: noon, Rate: money.RateScale, Points: []Point{{Key: 1, Amount: 100}, {Key: 2, Amount: 200}}}
	part := &Response{At: noon.Add(7 * time.Hour), Rate: money.RateScale, Partial: true, Points: []Point{{Key: 2, Amount: 300}}}
	h, _ := History(nil).Append(full)
	h, _ = h.Append(part)
	slots, d, err := h.slots()
	if err != nil || len(slots) != 2 {
		t.Fatalf("slots: got %v, %v, want 2 slots", slots, err)
	}
	var got [][2]money.Micro
	_ = d.each(2, func(_ uint64, a []money.Micro) { got = append(got, [2]money.Micro{a[0], a[1]}) })
	if want := [][2]money.Micro{{100, 100}, {200, 300}}; !reflect.DeepEqual(got, want) {
		t.Errorf("amounts of the slots: got %v, want %v", got, want)
	}
}

func FuzzHistory(f *testing.F) {
	h, _ := History(nil).Append(&Response{At: noon, Rate: money.RateScale, Points: []Point{{Key: 1, Amount: 100}, {Key: 9, Amount: cent}}})
	f.Add([]byte(h))
	f.Fuzz(func(_ *testing.T, b []byte) {
		slots, d, err := History(b).slots()
		if err == nil {
			_ = d.each(len(slots), func(uint64, []money.Micro) {})
		}
		_, _ = History(b).Append(&Response{At: noon, Rate: money.RateScale, Points: []Point{{Key: 5, Amount: 3}}})
		r := NewRound(noon, NewSet(money.Scale))
		_ = r.Add(Market{ID: 1, History: b}, nil, &Response{At: noon, Rate: money.RateScale, Points: []Point{{Key: 1, Amount: 3}}})
		r.Finish(func() {})
	})
}

func FuzzStored(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	set, state := anySet(r, 3, false), anyState(r)
	for _, v := range []encoding.BinaryMarshaler{set, &state, &Movers{{1, 2, 3}}} {
		b, _ := v.MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Set
		if s.UnmarshalBinary(b) == nil {
			var p Priced
			NewPricer(usd(), &s).Price(noon, Rest, setQuotes(5, 1e6, 1e9), State{Price: 3}, References{}, &p)
			checkRoundTrip(t, &s, new(Set))
		}
		_ = new(ValidationState).UnmarshalBinary(b)
		_ = new(Movers).UnmarshalBinary(b)
	})
}
