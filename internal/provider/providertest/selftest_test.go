package providertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

// TestRun_HoldsForAPlainProvider runs the suite over the least provider that can
// pass: an array of names and prices in dollars.
func TestRun_HoldsForAPlainProvider(t *testing.T) {
	const key = "canary-5up3r-s3cr3t"
	providertest.Run(t, providertest.Subject{
		New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
			o := provider.Options{Provider: "plain", Secrets: []string{key}}
			tweak(&o)
			c := provider.NewClient(o)
			t.Cleanup(c.Close)
			return &plain{client: c, url: baseURL + "/" + key + "/prices?key=" + key, key: key}
		},
		Good: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `[{"name":"AK-47 | Redline (Field-Tested)","price":12.34},`+
				`{"name":"★ Karambit","price":"610.005"},{"name":"P250 | Sand Dune (Battle-Scarred)","price":null}]`)
		}),
		Call: provider.Call{AppID: 730, File: "prices"},
		Want: []provider.Quote{
			quote("AK-47 | Redline (Field-Tested)", 12_340_000), quote("★ Karambit", 610_005_000),
			quote("P250 | Sand Dune (Battle-Scarred)", 0),
		},
		Render: func(rows []providertest.Row) []byte {
			var items []string
			for _, row := range rows {
				items = append(items, fmt.Sprintf(`{"name":%s,"price":%s}`, quoted(row.Name), row.Price))
			}
			return []byte("[" + strings.Join(items, ",") + "]")
		},
		Secret: key,
	})
}

// quoted is name as a JSON string, its bytes as they are wherever JSON can hold
// them so.
func quoted(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		if c < ' ' || c == '"' || c == '\\' {
			escaped, _ := json.Marshal(string(rune(c)))
			b.Write(escaped[1 : len(escaped)-1])
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}

func quote(name string, ask money.Micro) provider.Quote {
	return provider.Quote{
		Market: "plain", Name: name, Currency: "USD", Ask: ask, Listings: provider.Unknown, Sales: provider.Unknown,
	}
}

// plain is a provider as an adapter writes it.
type plain struct {
	client   *provider.Client
	url, key string
}

func (p *plain) Describe() provider.Description {
	return provider.Description{
		Name: "plain", Title: "Plain", Shape: provider.Bulk, Interval: 5 * time.Minute,
		Markets: []provider.Market{{Key: "plain", Title: "Plain", AppIDs: []int32{catalog.CS2}}},
		Files:   []provider.File{{Key: "prices", AppID: catalog.CS2, Markets: []string{"plain"}}},
	}
}

func (p *plain) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	req := provider.Request{URL: p.url, Header: http.Header{"X-Api-Key": {p.key}}, Meter: call.Meter}
	return provider.Result{}, p.client.Do(ctx, req, func(resp *provider.Response) error {
		sink.Restart()
		body, err := provider.SniffJSON("plain", resp.Body)
		if err != nil {
			return err
		}
		return decode(jsontext.NewDecoder(body), sink)
	})
}

// errSink marks what the sink refused, to tell it from what cannot be decoded.
type errSink struct{ error }

func (e errSink) Unwrap() error { return e.error }

func decode(dec *jsontext.Decoder, sink provider.Sink) error {
	if err := decodeArray(dec, sink); err != nil {
		if refused, ok := errors.AsType[errSink](err); ok {
			return refused.error
		}
		return provider.Protocol("plain", "malformed: %v", err)
	}
	return nil
}

func decodeArray(dec *jsontext.Decoder, sink provider.Sink) error {
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '[' {
		return fmt.Errorf("no array: %w", err)
	}
	for dec.PeekKind() == '{' {
		if err := decodeRow(dec, sink); err != nil {
			return err
		}
	}
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != ']' {
		return fmt.Errorf("no end of the array: %w", err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return errors.New("more than one document")
	}
	return nil
}

func decodeRow(dec *jsontext.Decoder, sink provider.Sink) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var name, price string
	for dec.PeekKind() != '}' {
		key, err := dec.ReadToken()
		if err != nil {
			return err
		}
		field := key.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		text := string(value)
		if value.Kind() == '"' {
			unquoted, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return err
			}
			text = string(unquoted)
		}
		switch field {
		case "name":
			name = text
		case "price":
			price = text
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return take(sink, name, price)
}

func take(sink provider.Sink, name, price string) error {
	if catalog.CheckName(name) != nil {
		sink.Reject("plain", name, "not a name")
		return nil
	}
	var ask money.Micro
	if price != "null" && price != "" {
		var err error
		if ask, err = money.Parse([]byte(price), 1); err != nil || ask < 0 {
			sink.Reject("plain", name, "not an amount")
			return nil
		}
	}
	q := quote(name, ask)
	if err := sink.Quote(&q); err != nil {
		return errSink{err}
	}
	return nil
}
