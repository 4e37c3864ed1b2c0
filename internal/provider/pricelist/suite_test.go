package pricelist

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

// suiteLists has a list for each format. The test replaces @ with the server's URL. The
// rows of renderRows are quotes of the market "shop".
var suiteLists = map[string]string{
	formatCSV: `{"key":"l","location":"@/list.csv","format":"csv","appId":730,"currency":"USD","name":"name",
		"headers":{"X-API-KEY":"${LIST_KEY}"},
		"markets":[{"key":"shop","ask":"price","listings":"count"},{"key":"steam","sale":"steam"}]}`,
	formatArray: `{"key":"l","location":"@/list.json?key=${LIST_KEY}","format":"jsonArray","appId":730,"currency":"USD",
		"root":"data.items","name":"name",
		"markets":[{"key":"shop","ask":"price","listings":"count"},{"key":"steam","sale":"steam"}]}`,
	formatObject: `{"key":"l","location":"@/list.json","format":"jsonObject","appId":730,"currency":"USD",
		"headers":{"Authorization":"Bearer ${LIST_KEY}"},
		"markets":[{"key":"shop","ask":"price","listings":"count"},{"key":"steam","sale":"steam"}]}`,
	formatNDJSON: `{"key":"l","location":"@/list.ndjson","format":"ndjson","appId":730,"currency":"USD","name":"name",
		"headers":{"X-API-KEY":"${LIST_KEY}"},
		"markets":[{"key":"shop","ask":"price","listings":"count"},{"key":"steam","sale":"steam"}]}`,
}

const suiteSecret = "canary-4711-of-the-lists"

func TestProvider_PassesTheProviderSuite(t *testing.T) {
	for format, listJSON := range suiteLists {
		t.Run(format, func(t *testing.T) {
			body := renderRows(format, []providertest.Row{
				{Name: "AK-47 | Redline (Field-Tested)", Price: "12.34"},
				{Name: "Music Kit | \"Quoted\", Crimson", Price: "0.004"},
				{Name: "壱", Price: "null"},
			}, "1.5")
			providertest.Run(t, providertest.Subject{
				New: func(t testing.TB, baseURL string, tweak func(*provider.Options)) provider.Provider {
					return suiteProvider(t, strings.Replace(listJSON, "@", baseURL, 1), tweak)
				},
				Good: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.ServeContent(w, r, "list", time.Time{}, bytes.NewReader(body))
				}),
				Call: provider.Call{AppID: 730, File: "l"},
				Want: []provider.Quote{
					suiteQuote("shop", "AK-47 | Redline (Field-Tested)", 12_340_000, 0),
					suiteQuote("steam", "AK-47 | Redline (Field-Tested)", 0, 1_500_000),
					suiteQuote("shop", "Music Kit | \"Quoted\", Crimson", 4_000, 0),
					suiteQuote("steam", "Music Kit | \"Quoted\", Crimson", 0, 1_500_000),
					suiteQuote("shop", "壱", 0, 0),
					suiteQuote("steam", "壱", 0, 1_500_000),
				},
				Render: func(rows []providertest.Row) []byte { return renderRows(format, rows, "") },
				Lines:  format == formatNDJSON || format == formatCSV,
				Secret: suiteSecret,
			})
		})
	}
}

func suiteQuote(market, name string, ask, sale int64) provider.Quote {
	q := provider.Quote{
		Market: market, Name: name, Currency: "USD", Listings: provider.Unknown, Sales: provider.Unknown,
	}
	q.Ask, q.Sale = microOf(ask), microOf(sale)
	if market == "shop" {
		q.Listings = 3
	}
	return q
}

func suiteProvider(t testing.TB, listJSON string, tweak func(*provider.Options)) provider.Provider {
	t.Helper()
	secret := only("LIST_KEY", suiteSecret)
	c, err := Parse([]byte(`{"lists":[`+listJSON+`]}`), Env{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	o := provider.Options{Provider: Name, Secrets: []string{suiteSecret}}
	tweak(&o)
	s, err := New(Options{Config: c, Clients: clientsOf(t, c, o), Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// renderRows writes rows in a format without validating them. Each row has the same sale
// on the market steam.
func renderRows(format string, rows []providertest.Row, sale string) []byte {
	var b bytes.Buffer
	rest := `,"count":3}`
	if sale != "" {
		rest = `,"count":3,"steam":` + sale + `}`
	}
	quote := func(name string) string { return `"` + jsonEscaper.Replace(name) + `"` }
	switch format {
	case formatCSV:
		b.WriteString("name,price,count,steam\r\n")
		for _, row := range rows {
			price := strings.TrimSuffix(strings.TrimPrefix(row.Price, `"`), `"`)
			fmt.Fprintf(&b, "%s,%s,3,%s\r\n", csvField(row.Name), csvField(price), sale)
		}
	case formatArray:
		b.WriteString(`{"success":true,"data":{"items":[`)
		for i, row := range rows {
			b.WriteString([]string{"", ","}[min(i, 1)])
			fmt.Fprintf(&b, `{"name":%s,"price":%s%s`, quote(row.Name), row.Price, rest)
		}
		b.WriteString(`]}}`)
	case formatObject:
		b.WriteString("{")
		for i, row := range rows {
			b.WriteString([]string{"", ","}[min(i, 1)])
			fmt.Fprintf(&b, `%s:{"price":%s%s`, quote(row.Name), row.Price, rest)
		}
		b.WriteString("}")
	default:
		for _, row := range rows {
			fmt.Fprintf(&b, `{"name":%s,"price":%s%s`+"\n", quote(row.Name), row.Price, rest)
		}
	}
	return b.Bytes()
}

var jsonEscaper = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x00", `\u0000`)

func csvField(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
