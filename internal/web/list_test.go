package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestList_LinksKeepOtherFilters(t *testing.T) {
	next := "c2"
	l := listOf(httptest.NewRequest(http.MethodGet, "/x?a=1&sort=-price&cursor=c1&unknown=z", nil), "a", "b").until(&next)
	for what, got := range map[string]string{
		"/x?a=1&b=2&sort=-price":        l.With("b", "2"),
		"/x?sort=-price":                l.With("a", ""),
		"/x?a=1&sort=-price":            l.First(),
		"/x?a=1&cursor=c2&sort=-price":  l.Next(),
		"/x?a=1&format=csv&sort=-price": l.CSV(),
		"/x?a=1&sort=price":             l.Column("Price", "price").Href,
		"/x?a=1&sort=name":              l.Column("Name", "name").Href,
		"/x?a=1&sort=-age":              l.Number("Age", "age").Href,
		"/x":                            l.Clear(),
		"/x?a=3&sort=-price":            l.Tab("", "a", "3").Href,
		"descending":                    l.Column("", "price").Order,
	} {
		if got != what {
			t.Errorf("got %q, want %q", got, what)
		}
	}
	if got := l.Hidden("a"); len(got) != 1 || got[0] != (field{"sort", "-price"}) {
		t.Errorf("got hidden fields %v, want only the order", got)
	}
	plain := listOf(httptest.NewRequest(http.MethodGet, "/x", nil), "a")
	if got := plain.First() + plain.Next() + plain.Clear(); got != "" {
		t.Errorf("list without filters: got links %q, want none", got)
	}
}

func TestSendCSV_BreaksConnectionAfterError(t *testing.T) {
	p := newEmptyWorld(t).handler.(*site).pages
	send := func(err error) (rec *httptest.ResponseRecorder, broken any) {
		rec = httptest.NewRecorder()
		defer func() { broken = recover() }()
		must(t, p.sendCSV(rec, httptest.NewRequest(http.MethodGet, "/x", nil), "items", []string{"name", "price"}, func(yield func([]string, error) bool) {
			_ = yield([]string{`a "b", c`, "1.5"}, nil) && yield(nil, err)
		}))
		return rec, nil
	}
	if rec, broken := send(errors.New("no row")); broken == nil || rec.Code != http.StatusOK {
		t.Errorf("got %v, want a broken connection", broken)
	}
}

func TestAPICall_QuotesForTheShell(t *testing.T) {
	got := apiCall{Method: http.MethodPost, Path: "/api/x?name=it's", Body: `{"a":"it's"}`}.Command()
	if want := `'{"a":"it'\''s"}'`; !strings.Contains(got, want) || !strings.Contains(got, `'/api/x?name=it'\''s'`) {
		t.Errorf("got %s, want the body and the path in quotes", got)
	}
}
