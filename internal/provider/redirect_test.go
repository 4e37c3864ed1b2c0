package provider

import (
	"net/http"
	"net/url"
	"testing"
)

func TestFollow_BlocksUnsafeRedirects(t *testing.T) {
	c := NewClient(Options{Provider: "test"})
	for _, r := range []struct {
		from, to string
		kind     Kind // empty: the redirect is followed
		key      bool // Authorization is sent to the target
	}{
		{"https://a.test/x", "/y", "", true},
		{"https://a.test/x", "https://A.test:443/y", "", true},
		{"http://a.test/x", "https://a.test/x", "", true},
		{"http://a.test:80/x", "https://a.test:443/x", "", true},
		{"https://a.test/x", "https://a.test.:443/y", "", true},
		{"http://a.test/x", "http://a.test:8080/x", "", false},
		{"http://a.test:443/x", "https://a.test/x", "", false},
		{"https://a.test/x", "https://b.test/x", "", false},
		{"https://a.test/x", "https://sub.a.test/x", "", false},
		{"https://a.test/x", "//b.test/x", "", false},
		{"https://a.test/x", "https://user:pass@a.test/x", "", true},
		{"https://a.test/x", "http://a.test/x", KindBlocked, false},
		{"https://a.test/x", "http://b.test/x", KindBlocked, false},
		{"http://a.test/x", "ftp://a.test/x", KindBlocked, false},
		{"http://a.test/x", "javascript:alert(1)", KindBlocked, false},
		{"http://a.test/x", "http://", KindBlocked, false},
		{"http://a.test/x", "http://%zz/", KindProtocol, false},
	} {
		from, err := url.Parse(r.from)
		if err != nil {
			t.Fatal(err)
		}
		h := &hop{method: "GET", url: from, header: http.Header{"Authorization": {"k"}, "Accept": {"*/*"}}}
		next, err := c.follow(h, r.to)
		if KindOf(err) != r.kind {
			t.Errorf("%s to %s: got error %v, want kind %q", r.from, r.to, err, r.kind)
			continue
		}
		if err != nil {
			continue
		}
		if got := next.header.Get("Authorization") != ""; got != r.key || next.header.Get("Accept") == "" {
			t.Errorf("%s to %s: got header %v, want Authorization %v", r.from, r.to, next.header, r.key)
		}
		if next.url.User != nil {
			t.Errorf("%s to %s: got the user name of the redirect in the request, want none", r.from, r.to)
		}
	}
}
