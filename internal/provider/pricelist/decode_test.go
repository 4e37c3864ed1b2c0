package pricelist

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/feed"
)

const (
	csvList = `{"key":"six","location":"x","format":"csv","appId":730,"currency":"USD","name":"name",
		"markets":[{"key":"steam","ask":"steam"},{"key":"buff","ask":"buff","listings":"count"}]}`
	arrayList = `{"key":"six","location":"x","format":"jsonArray","appId":730,"currency":"USD","name":"name",
		"markets":[{"key":"steam","ask":"price","bid":"bid","listings":"count"}]}`
	objectList = `{"key":"six","location":"x","format":"jsonObject","appId":730,"currency":"USD",
		"markets":[{"key":"steam","ask":"."}]}`
)

func TestAmount_ReadsTheFormsOfRealLists(t *testing.T) {
	for _, c := range []struct {
		list, row string
		ask       string // "": no ask; "!": rejected for the reason
		reason    string
	}{
		{objectList, `12.345`, "12.345", ""},
		{objectList, `"12.345"`, "12.345", ""},
		{objectList, `1e-3`, "0.001", ""},
		{objectList, `null`, "", ""},
		{objectList, `""`, "", ""},
		{objectList, `"null"`, "", ""},
		{objectList, `0`, "", ""},
		{objectList, `0.0`, "", ""},
		{objectList, `"0.00"`, "", ""},
		{objectList, `-1`, "", ""},
		{objectList, `-1.0`, "", ""},
		{objectList, `"-1"`, "", ""},
		{objectList, `-2`, "!", feed.RejectNegative},
		{objectList, `-0.5`, "!", feed.RejectNegative},
		{objectList, `"NaN"`, "!", feed.RejectSyntax},
		{objectList, `"1,515.59"`, "!", feed.RejectSyntax},
		{objectList, `"$1.50"`, "!", feed.RejectSyntax},
		{objectList, `" 1"`, "!", feed.RejectSyntax},
		{objectList, `1e400`, "!", feed.RejectRange},
		{objectList, `99999999999999999999`, "!", feed.RejectRange},
		{objectList, `true`, "!", feed.RejectSyntax},
		{objectList, `[1]`, "!", feed.RejectSyntax},
		{objectList, `{"price":1}`, "!", feed.RejectSyntax},
	} {
		t.Run(c.row, func(t *testing.T) {
			got := mustRead(t, compileOne(t, c.list), `{"good":1,"better":2,"item":`+c.row+`}`)
			if c.ask == "!" {
				if len(got.rejects) != 1 || got.rejects[0] != (reject{"steam", "item", c.reason}) {
					t.Errorf("got rejects %+v, want reason %q", got.rejects, c.reason)
				}
				return
			}
			q := got.find(t, "steam", "item", "")
			if c.ask == "" && q.Ask != 0 || c.ask != "" && q.Ask != usd(t, c.ask) {
				t.Errorf("got ask %v, want %q", q.Ask, c.ask)
			}
		})
	}
}

func TestAmount_MinusOneMeansNoneInTheListsUnit(t *testing.T) {
	l := compileOne(t, strings.Replace(objectList, `"currency"`, `"unit":1000,"currency"`, 1))
	got := mustRead(t, l, `{"a":26350,"b":-1,"c":-1000,"d":21}`)
	if q := got.find(t, "steam", "a", ""); q.Ask != usd(t, "26.35") {
		t.Errorf("a: got ask %v, want 26.35", q.Ask)
	}
	if q := got.find(t, "steam", "b", ""); q.Ask != 0 {
		t.Errorf("b: got ask %v, want none", q.Ask)
	}
	if len(got.rejects) != 1 || got.rejects[0].name != "c" {
		t.Errorf("got rejects %+v, want c", got.rejects)
	}
}

func TestCount_DistinguishesUnknownFromZero(t *testing.T) {
	l := compileOne(t, arrayList)
	got := mustRead(t, l, `[{"name":"absent","price":1},{"name":"null","price":1,"count":null},{"name":"zero","price":1,"count":0},
		{"name":"text","price":1,"count":"17"},{"name":"minus","price":1,"count":-1},{"name":"exp","price":1,"count":1e3},
		{"name":"half","price":1,"count":1.5},{"name":"comma","price":1,"count":"3,990"},{"name":"bool","price":1,"count":false}]`)
	for name, want := range map[string]int64{"absent": -1, "null": -1, "zero": 0, "text": 17, "minus": -1, "exp": 1000} {
		if q := got.find(t, "steam", name, ""); q.Listings != want {
			t.Errorf("%s: got %d listings, want %d", name, q.Listings, want)
		}
	}
	if len(got.rejects) != 3 {
		t.Errorf("got rejects %+v, want half, comma and bool", got.rejects)
	}
}

func TestTime_Formats(t *testing.T) {
	want := time.Date(2026, 9, 29, 18, 51, 33, 0, time.UTC)
	day := time.Date(2026, 9, 29, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		format, text string
		want         time.Time
		ok           bool
	}{
		{"auto", "1790707893", want, true},
		{"auto", "1790707893000", want, true},
		{"auto", "2026-09-29T18:51:33Z", want, true},
		{"auto", "2026-09-29T20:51:33+02:00", want, true},
		{"auto", "2026-09-29", day, true},
		{"auto", "yesterday", time.Time{}, false},
		{"unix", "1790707893", want, true},
		{"unix", "1790707893000", time.Time{}, false},
		{"unixMs", "1790707893000", want, true},
		{"unixMs", "1790707893", time.Time{}, false},
		{"rfc3339", "2026-09-29", time.Time{}, false},
		{"date", "2026-09-29", day, true},
		{"2006-01-02 15:04:05", "2026-09-29 18:51:33", want, true},
		{"auto", "", time.Time{}, true},
		{"auto", "0", time.Time{}, true},
		{"auto", "-5", time.Time{}, false},
	} {
		got, reason := feed.Cell{Kind: feed.Text, Text: []byte(c.text)}.Time(c.format)
		if (reason == "") != c.ok || !got.Equal(c.want) {
			t.Errorf("format %s, text %q: got %v with reason %q, want %v", c.format, c.text, got, reason, c.want)
		}
	}
}

func TestPhase_FromField(t *testing.T) {
	l := compileOne(t, strings.Replace(arrayList, `"name":`, `"phase":{"field":"version"},"name":`, 1))
	got := mustRead(t, l, `[{"name":"K","version":null,"price":1},{"name":"K","version":"Ruby","price":9},{"name":"K","version":"Phase 9","price":9}]`)
	if got.find(t, "steam", "K", "").Ask != usd(t, "1") || got.find(t, "steam", "K", "Ruby").Ask != usd(t, "9") {
		t.Errorf("got quotes %+v, want K for 1 and its phase Ruby for 9", got.quotes)
	}
	if !slices.Equal(got.rejects, []reject{{"", "K", feed.RejectPhase}}) {
		t.Errorf("got rejects %+v, want one for the phase", got.rejects)
	}
}

func TestPhase_FromName(t *testing.T) {
	const knife = "★ Karambit | Doppler (Factory New)"
	content := `[{"name":"` + knife + `","price":1},{"name":"` + knife + ` - Ruby","price":2},
		{"name":"★ Karambit | Doppler Black Pearl (Factory New)","price":3},
		{"name":"★ Karambit | Gamma Doppler Phase 2 (Minimal Wear)","price":4},{"name":"Sticker - Ruby Red","price":5}]`
	for _, c := range []struct {
		where string
		want  [][2]string
	}{
		{"suffix", [][2]string{{knife, ""}, {knife, "Ruby"}, {"★ Karambit | Doppler Black Pearl (Factory New)", ""}, {"★ Karambit | Gamma Doppler Phase 2 (Minimal Wear)", ""}, {"Sticker - Ruby Red", ""}}},
		{"infix", [][2]string{{knife, ""}, {knife + " - Ruby", ""}, {knife, "Black Pearl"}, {"★ Karambit | Gamma Doppler (Minimal Wear)", "Phase 2"}, {"Sticker - Ruby Red", ""}}},
		{"both", [][2]string{{knife, ""}, {knife, "Ruby"}, {knife, "Black Pearl"}, {"★ Karambit | Gamma Doppler (Minimal Wear)", "Phase 2"}, {"Sticker - Ruby Red", ""}}},
	} {
		t.Run(c.where, func(t *testing.T) {
			l := compileOne(t, strings.Replace(arrayList, `"name":`, `"phase":{"name":"`+c.where+`"},"name":`, 1))
			got := mustRead(t, l, content)
			for i, q := range got.quotes {
				if c.want[i] != [2]string{q.Name, q.Phase} {
					t.Errorf("row %d: got %q with phase %q, want %q", i, q.Name, q.Phase, c.want[i])
				}
			}
			if len(got.quotes) != len(c.want) {
				t.Errorf("got %d quotes, want %d", len(got.quotes), len(c.want))
			}
		})
	}
}

func TestMarkets_OnePerRow(t *testing.T) {
	l := compileOne(t, `{"key":"k","location":"x","format":"ndjson","appId":730,"currency":"USD","name":"name","market":"shop",
		"quote":{"ask":"price","unit":100},"markets":[{"key":"a","value":"A Shop"},{"key":"b","unit":1},{"key":"gone"}]}`)
	c := &collector{}
	result, err := read(t.Context(), l, strings.NewReader(`{"name":"X","shop":"A Shop","price":150}`+"\n"+
		`{"name":"X","shop":"b","price":2}`+"\n"+`{"name":"X","shop":"other","price":3}`+"\n"+`{"name":"X","shop":"b","price":4}`), zeroTime, c)
	if err != nil {
		t.Fatal(err)
	}
	if c.find(t, "a", "X", "").Ask != usd(t, "1.5") || len(c.quotes) != 1 {
		t.Errorf("got quotes %+v, want market a at 1.5", c.quotes)
	}
	if len(c.rejects) != 2 || c.rejects[0].reason != provider.RejectConflict || !slices.Equal(result.Silent, []string{"gone"}) {
		t.Errorf("got rejects %+v and silent markets %v, want 2 conflicts and [gone]", c.rejects, result.Silent)
	}
}

func TestMarkets_NestedQuotesUseFieldsOfTheRow(t *testing.T) {
	l := compileOne(t, `{"key":"k","location":"x","format":"jsonArray","appId":730,"currency":"USD","name":"name","market":"p",
		"each":"in.prices","quote":{"ask":"price","sales":"^sold","salesWindow":"720h"},"markets":[{"key":"a"},{"key":"b"}]}`)
	got := mustRead(t, l, `[{"in":{"prices":[{"p":"a","price":1},{"p":"b"}]},"sold":7,"name":"X"},{"name":"Y","in":{"prices":null}},{"name":"Z"}]`)
	if q := got.find(t, "a", "X", ""); q.Ask != usd(t, "1") || q.Sales != 7 {
		t.Errorf("got quote %+v, want ask 1 and 7 sales", q)
	}
	if len(got.quotes) != 2 || len(got.rejects) != 0 {
		t.Errorf("got quotes %+v, rejects %+v, want 2 quotes", got.quotes, got.rejects)
	}
}

func TestListTime_OutsideOfTheRows(t *testing.T) {
	l := compileOne(t, `{"key":"k","location":"x","format":"jsonObject","appId":730,"currency":"USD","root":"prices",
		"time":{"field":"metadata.updated_at"},"markets":[{"key":"m","ask":"."}]}`)
	want := time.Date(2026, 8, 8, 0, 0, 0, 0, time.UTC)
	for name, content := range map[string]string{
		"before": `{"metadata":{"updated_at":"2026-08-08","n":1},"prices":{"A":1}}`,
		"after":  `{"other":[{"prices":{}}],"prices":{"A":1},"metadata":{"n":1,"updated_at":"2026-08-08"}}`,
	} {
		c := &collector{}
		result, err := read(t.Context(), l, strings.NewReader(content), zeroTime, c)
		if err != nil {
			t.Fatal(err)
		}
		if !result.ProviderTime.Equal(want) {
			t.Errorf("%s: got provider time %v, want %v", name, result.ProviderTime, want)
		}
		// Quotes are emitted before a time that follows the rows is read.
		if stated := c.quotes[0].MarketTime.Equal(want); stated != (name == "before") {
			t.Errorf("%s: got market time %v, want one only if it precedes the rows", name, c.quotes[0].MarketTime)
		}
	}
}

func TestList_ReportsEachFault(t *testing.T) {
	for _, c := range []struct {
		name, list, content string
		kind                provider.Kind
		want                []string
	}{
		{"wrong column", csvList, "name,steem,buff,count\nA,1,1,1\n", provider.KindProtocol, []string{`list "six"`, `missing column "steam"`, `"name", "steem", "buff", "count"`}},
		{"column twice", csvList, "name,steam,buff,count,steam\nA,1,1,1,1\n", provider.KindProtocol, []string{`two columns have the name "steam"`}},
		{"wrong member", arrayList, `[{"name":"A","min_price":1},{"name":"B","min_price":2}]`, provider.KindProtocol, []string{`no row has "price"`, `"name", "min_price"`}},
		{"wrong name", arrayList, `[{"title":"A","price":1}]`, provider.KindProtocol, []string{`no row has "name"`, `"title", "price"`}},
		{"wrong root", strings.Replace(arrayList, `"name":`, `"root":"data.items","name":`, 1), `{"success":false,"data":{"error":"x"}}`, provider.KindProtocol, []string{`root "data.items"`, `"success", "data"`}},
		{"two roots", strings.Replace(arrayList, `"name":`, `"root":"a","name":`, 1), `{"a":[{"name":"A","price":1}],"a":[]}`, provider.KindProtocol, []string{`root "a" is given twice`}},
		{"array for object", objectList, `[1]`, provider.KindProtocol, []string{"is an array, expected an object"}},
		{"object for array", arrayList, `{"a":1}`, provider.KindProtocol, []string{"is an object, expected an array"}},
		{"html", arrayList, "\n<!DOCTYPE html><html>", provider.KindProtocol, []string{"HTML page"}},
		{"html for csv", csvList, "<html>,<body>", provider.KindProtocol, []string{"HTML page"}},
		{"null", arrayList, " null\n", provider.KindProtocol, []string{"null"}},
		{"empty", csvList, "", provider.KindProtocol, []string{"empty"}},
		{"blank", arrayList, "\n \n", provider.KindProtocol, []string{"empty"}},
		{"only a byte order mark", csvList, "\uFEFF", provider.KindProtocol, []string{"empty"}},
		{"no rows", arrayList, "[]", provider.KindProtocol, []string{"empty"}},
		{"header only", csvList, "name,steam,buff,count\n", provider.KindProtocol, []string{"empty"}},
		{"invalid JSON", arrayList, "lorem ipsum", provider.KindProtocol, []string{"malformed JSON at byte"}},
		{"only invalid rows", objectList, `{"A":"x","B":"y"}`, provider.KindProtocol, []string{"all 2 rows are invalid", feed.RejectSyntax}},
		{"mostly invalid rows", objectList, `{"A":1,"B":"y","C":"z"}`, provider.KindProtocol, []string{"more rows rejected than accepted (2 and 1)"}},
		{"no price at all", objectList, `{"A":null,"B":0}`, provider.KindProtocol, []string{"none of 2 rows has a price"}},
		{"too few", strings.Replace(objectList, `"currency"`, `"minItems":3,"currency"`, 1), `{"A":1,"B":2}`, provider.KindProtocol, []string{"2 items, want at least 3 (minItems)"}},
		{"too many", strings.Replace(objectList, `"currency"`, `"maxItems":1,"currency"`, 1), `{"A":1,"B":2}`, provider.KindTooLarge, []string{"maxItems"}},
		{"too large", strings.Replace(objectList, `"currency"`, `"maxBytes":8,"currency"`, 1), `{"A":1,"B":2}`, provider.KindTooLarge, []string{"maxBytes"}},
		{"a row too large by one byte", arrayList, "[" + rowOf(feed.MaxRow+1) + "]", provider.KindTooLarge, []string{"a row exceeds 1048576 bytes"}},
		{"a row of two megabytes", arrayList, "[" + rowOf(2_000_024) + "]", provider.KindTooLarge, []string{"a row exceeds 1048576 bytes"}},
		{"malformed middle", arrayList, `[{"name":"A","price":1},{"name":"B","price":},{"name":"C","price":1}]`, provider.KindProtocol, []string{"malformed JSON at byte 44"}},
		{"truncated", arrayList, `[{"name":"A","price":1},{"name":"B","pr`, provider.KindProtocol, []string{"is truncated"}},
		{"truncated csv", csvList, "name,steam,buff,count\nA,1,1,1\n\"B", provider.KindProtocol, []string{"is truncated"}},
		{"ragged csv", csvList, "name,steam,buff,count\nA,1,1,1\nB,1\n", provider.KindProtocol, []string{"record 3 has 2 fields"}},
		{"trailing", arrayList, `[{"name":"A","price":1}] x`, provider.KindProtocol, []string{"malformed JSON"}},
		{"second document", arrayList, `[{"name":"A","price":1}] []`, provider.KindProtocol, []string{"after the document"}},
		{"invalid utf-8", arrayList, "[{\"name\":\"A\xff\",\"price\":1}]", provider.KindProtocol, []string{"malformed JSON"}},
		{"NaN", arrayList, `[{"name":"A","price":NaN}]`, provider.KindProtocol, []string{"malformed JSON"}},
		{
			"unknown markets", `{"key":"six","location":"x","format":"ndjson","appId":730,"currency":"USD","name":"n","market":"m","markets":[{"key":"a","ask":"p"}]}`,
			`{"n":"A","m":"b","p":1}`, provider.KindProtocol,
			[]string{`no row has a configured market`, `"b"`},
		},
		{
			"bad list time", `{"key":"six","location":"x","format":"jsonArray","appId":730,"currency":"USD","root":"r","time":{"field":"t","format":"date"},"name":"n","markets":[{"key":"a","ask":"p"}]}`,
			`{"t":"soon","r":[]}`, provider.KindProtocol,
			[]string{`time at "t"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readText(t, compileOne(t, c.list), c.content)
			wantError(t, err, c.kind, c.want...)
		})
	}
}

func TestRead_ReturnsTheErrorOfTheSink(t *testing.T) {
	c := &collector{limit: 1}
	_, err := read(t.Context(), compileOne(t, objectList), strings.NewReader(`{"A":1,"B":2}`), zeroTime, c)
	if !errors.Is(err, errFull) {
		t.Errorf("got error %v, want %v", err, errFull)
	}
}

func TestRead_StopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := read(ctx, compileOne(t, objectList), strings.NewReader(`{"A":1}`), zeroTime, &collector{})
	wantError(t, err, provider.KindCancelled)
}

// rowOf returns a row with n bytes. Most of them are in a member that is not configured.
func rowOf(n int) string {
	const head, tail = `{"name":"A","price":1,"unread":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func TestRead_AcceptsARowOfTheMaximumSize(t *testing.T) {
	if _, err := readText(t, compileOne(t, arrayList), "["+rowOf(feed.MaxRow)+"]"); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}
