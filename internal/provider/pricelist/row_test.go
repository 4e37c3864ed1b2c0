package pricelist

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/feed"
)

func TestRow_EmptyPriceMeansNotOffered(t *testing.T) {
	got := mustRead(t, compileOne(t, csvList), "name,steam,buff,count\nA,,1.5,3\nB,2,,0\n")
	want := provider.Quote{Market: "steam", Name: "A", Currency: "USD", Listings: -1, Sales: -1}
	if q := got.find(t, "steam", "A", ""); q != want {
		t.Errorf("got quote %+v, want %+v", q, want)
	}
	if q := got.find(t, "buff", "B", ""); q.Ask != 0 || q.Listings != 0 {
		t.Errorf("got quote %+v, want no ask and 0 listings", q)
	}
}

func TestRow_MissingMemberGivesNoQuote(t *testing.T) {
	got := mustRead(t, compileOne(t, arrayList), `[{"name":"A","price":null},{"name":"B"},{"name":"C","price":1}]`)
	if len(got.quotes) != 2 || len(got.rejects) != 0 {
		t.Errorf("got quotes %+v, rejects %+v, want quotes of A and C", got.quotes, got.rejects)
	}
}

func TestRow_DuplicatesWithDifferentPricesAreAllRejected(t *testing.T) {
	for _, c := range []struct{ name, list, content string }{
		{"object", objectList, `{"A":1,"B":5,"A":2,"C":3,"D":4,"A":1,"C":3}`},
		{"array", arrayList, `[{"name":"A","price":1},{"name":"B","price":5},{"name":"A","price":2},{"name":"C","price":3},{"name":"D","price":4},
			{"name":"A","price":1},{"name":"C","price":3}]`},
		{"csv", csvList, "name,steam,buff,count\nA,1,1,\nB,5,1,\nA,2,1,\nC,3,1,\nD,4,1,\nE,4,1,\nF,4,1,\nA,1,1,\nC,3,1,\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustRead(t, compileOne(t, c.list), c.content)
			for _, q := range got.quotes {
				if q.Market == "steam" && q.Name == "A" {
					t.Errorf("got quote %+v of a name with different prices, want none", q)
				}
			}
			if q := got.find(t, "steam", "C", ""); q.Ask != usd(t, "3") {
				t.Errorf("duplicate with the same price: got ask %v, want 3", q.Ask)
			}
			counts := map[reject]int{}
			for _, r := range got.rejects {
				counts[r]++
			}
			conflict, repeat := reject{"steam", "A", provider.RejectConflict}, reject{"steam", "C", provider.RejectRepeat}
			if counts[conflict] != 3 || counts[repeat] != 1 {
				t.Errorf("got rejects %+v, want 3 conflicts of A and 1 repeat of C", got.rejects)
			}
		})
	}
}

func TestRow_ValidRowReplacesARejectedOne(t *testing.T) {
	got := mustRead(t, compileOne(t, objectList), `{"A":"NaN","B":5,"A":2}`)
	if q := got.find(t, "steam", "A", ""); q.Ask != usd(t, "2") {
		t.Errorf("got ask %v, want 2", q.Ask)
	}
}

func TestRow_DuplicateMemberIsRejected(t *testing.T) {
	got := mustRead(t, compileOne(t, arrayList), `[{"name":"A","price":1,"price":2},{"name":"B","price":5}]`)
	if len(got.quotes) != 1 || len(got.rejects) != 1 || got.rejects[0].reason != feed.RejectTwice {
		t.Errorf("got quotes %+v, rejects %+v, want B quoted and A rejected", got.quotes, got.rejects)
	}
}

func TestRow_RejectsInvalidNames(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	got := mustRead(t, compileOne(t, csvList), "name,steam,buff,count\nA,1,1,\nB,1,1,\nC,1,1,\nbad\xff,1,1,\nnul\x00,1,1,\n"+long+",1,1,\n,1,1,\n")
	if len(got.quotes) != 6 || len(got.rejects) != 4 {
		t.Fatalf("got %d quotes, rejects %+v, want 6 quotes and 4 rejects", len(got.quotes), got.rejects)
	}
	for _, r := range got.rejects {
		if r.reason != feed.RejectName || len(r.name) > 100 {
			t.Errorf("got reject %+v, want reason %q and a shortened name", r, feed.RejectName)
		}
	}
	got = mustRead(t, compileOne(t, arrayList), `[{"name":"A","price":1},{"name":"B","price":1},{"name":"C","price":1},{"name":7,"price":1},{"price":1},{"name":null,"price":1}]`)
	if len(got.quotes) != 3 || len(got.rejects) != 3 || got.rejects[0].reason != feed.RejectNameKind || got.rejects[1].reason != feed.RejectNoName {
		t.Errorf("got %d quotes, rejects %+v, want 3 quotes and 3 rejects", len(got.quotes), got.rejects)
	}
}

func TestRow_ReadsAllFieldsOfAQuote(t *testing.T) {
	l := compileOne(t, `{"key":"k","location":"x","format":"jsonArray","appId":730,"name":"a\\.b.name","unit":100,
		"where":{"game":"csgo"},"currency":{"field":"cur"},"markets":[
		{"key":"m","ask":"/a.b/p~1q","sale":["s.d1","s.d7"],"sales":"n","salesWindow":"168h","time":{"field":"t"}},
		{"key":"o","ask":"other","currency":"CNY","unit":1}]}`)
	got := mustRead(t, l, `[{"game":"csgo","cur":"EUR","a.b":{"name":"A","p/q":"2710"},"s":{"d1":null,"d7":5},"n":0,"t":1763690112,"other":2.5},
		{"game":"rust","cur":"EUR","a.b":{"name":"B","p/q":1}},
		{"game":"csgo","cur":"€","a.b":{"name":"C","p/q":1}},
		{"game":"csgo","cur":"USD","a.b":{"name":"D","p/q":1},"t":"yesterday"},
		{"game":"csgo","cur":"USD","a.b":{"name":"E","p/q":1},"n":null}]`)
	want := provider.Quote{
		Market: "m", Name: "A", Currency: "EUR", Ask: usd(t, "27.1"), Sale: usd(t, "0.05"), Listings: -1,
		Sales: 0, SalesWindow: 168 * time.Hour, MarketTime: time.Unix(1763690112, 0).UTC(),
	}
	if q := got.find(t, "m", "A", ""); q != want {
		t.Errorf("got quote %+v, want %+v", q, want)
	}
	if q := got.find(t, "o", "A", ""); q.Ask != usd(t, "2.5") || q.Currency != "CNY" {
		t.Errorf("got quote %+v, want ask 2.5 CNY", q)
	}
	if q := got.find(t, "m", "E", ""); q.Sales != -1 || q.SalesWindow != 0 || q.Currency != "USD" {
		t.Errorf("got quote %+v, want unknown sales in USD", q)
	}
	if len(got.quotes) != 3 || !slices.Equal(got.rejects, []reject{{"m", "C", feed.RejectCurrency}, {"m", "D", feed.RejectTime}}) {
		t.Errorf("got %d quotes, rejects %+v, want 3 quotes and rejects of C and D", len(got.quotes), got.rejects)
	}
}
