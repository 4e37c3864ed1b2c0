package steamtest

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/provider/providertest"
)

// overview serves a priceoverview request with formatted amounts.
func (s *Server) overview(w http.ResponseWriter, app, name, currency string) {
	item, ok := s.item(w, app, name, `{"success":true}`)
	if !ok {
		return
	}
	n := s.currency(currency)
	w.Header().Set("Cache-Control", "public, max-age=15")
	body := `{"success":true`
	if text := cmp.Or(item.LowestText, Text(n, item.Lowest)); text != "" {
		body += `,"lowest_price":` + providertest.Quote(text)
	}
	if value := cmp.Or(item.VolumeValue, quoteUnlessEmpty(thousands(int64(item.Volume), ","))); value != "" {
		body += `,"volume":` + value
	}
	if text := cmp.Or(item.MedianText, Text(n, item.Median)); text != "" {
		body += `,"median_price":` + providertest.Quote(text)
	}
	reply(w, Reply{Body: body + "}"})
}

// Text formats an amount in hundredths like Steam's pages. The currency is Steam's number.
// It returns "" for 0.
func Text(currency int, hundredths int64) string {
	if hundredths == 0 {
		return ""
	}
	style, ok := styles[currency]
	if !ok {
		style = styles[1]
	}
	whole := cmp.Or(thousands(hundredths/100, style.thousands), "0")
	return style.prefix + whole + style.decimal + fmt.Sprintf("%02d", hundredths%100) + style.suffix
}

// style is the notation of amounts in a currency.
type style struct{ prefix, thousands, decimal, suffix string }

var styles = map[int]style{
	1:  {"$", ",", ".", ""},
	2:  {"£", ",", ".", ""},
	3:  {"", ".", ",", "€"},
	4:  {"CHF ", "'", ".", ""},
	5:  {"", " ", ",", " pуб."},
	7:  {"R$ ", ".", ",", ""},
	8:  {"¥ ", ",", ".", ""},
	20: {"CDN$ ", ",", ".", ""},
	23: {"¥ ", ",", ".", ""},
	24: {"₹ ", ",", ".", ""},
	37: {"", "\u00a0", ",", "₸"},
}

// thousands formats a number with group separators. It returns "" for 0.
func thousands(n int64, separator string) string {
	if n == 0 {
		return ""
	}
	return strings.ReplaceAll(humanize.Comma(n), ",", separator)
}

func quoteUnlessEmpty(text string) string {
	if text == "" {
		return ""
	}
	return providertest.Quote(text)
}

// book serves an orderbook request. query is its parameter qp.
func (s *Server) book(w http.ResponseWriter, query string) {
	app, name, ok := parseQuery(query)
	if !ok {
		reply(w, Reply{http.StatusBadRequest, Page})
		return
	}
	item, ok := s.item(w, app, name, `{"data":{"success":false}}`)
	if !ok {
		return
	}
	ask, sells := orders(item.Lowest, item.Sellers)
	bid, buys := orders(item.Highest, item.Buyers)
	body := fmt.Sprintf(`{"success":true,"data":{"amtMinSellOrder":%s,"amtMaxBuyOrder":%s,"eCurrency":%d,"cSellOrders":%d,"cBuyOrders":%d,`+
		`"rgCompactSellOrders":%s,"rgCompactBuyOrders":%s}}`, ask, bid, s.currency(""), item.Sellers, item.Buyers, sells, buys)
	if s.Wrapped {
		body = `{"data":` + body + `}`
	}
	reply(w, Reply{Body: body})
}

// parseQuery parses a query of the form [730,"name"].
func parseQuery(query string) (app, name string, ok bool) {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(query, "["), "]")
	app, quoted, several := strings.Cut(inner, ",")
	text, err := jsontext.AppendUnquote(nil, quoted)
	return app, string(text), closed && several && err == nil && strings.HasPrefix(query, "[")
}

// orders formats the best price and the list of n orders at that price.
func orders(best int64, n int) (price, all string) {
	if best == 0 {
		return "null", "[]"
	}
	return strconv.FormatInt(best, 10), fmt.Sprintf("[%d,%d]", best, n)
}

// pageSize is the maximum number of rows that search/render returns. The real server also
// ignores the requested number.
const pageSize = 10

const searchRow = `{"name":%[1]s,"hash_name":%[1]s,"sell_listings":%[2]d,"sell_price":%[3]d,"sell_price_text":%[4]s,"app_icon":"","app_name":"",` +
	`"asset_description":{"appid":%[5]d,"classid":"3000000001","instanceid":"100000001","tradable":1,"name":%[1]s,"market_hash_name":%[1]s,"commodity":0},"sale_price_text":%[4]s}`

// search serves one page of a game's items. The prices are always in dollars.
func (s *Server) search(w http.ResponseWriter, app, start string) {
	from, err := strconv.Atoi(start)
	if err != nil || from < 0 {
		from = 0
	}
	var rows []string
	total := 0
	for i := range s.Items {
		item := &s.Items[i]
		if s.Empty || strconv.Itoa(int(item.AppID)) != app {
			continue
		}
		if total >= from && len(rows) < pageSize {
			rows = append(rows, fmt.Sprintf(searchRow, providertest.Quote(item.Name), item.Sellers, item.Lowest,
				providertest.Quote(Text(1, item.Lowest)), item.AppID))
		}
		total++
	}
	reply(w, Reply{Body: fmt.Sprintf(`{"success":true,"start":%d,"pagesize":%d,"total_count":%d,"searchdata":{"query":"","search_descriptions":false,`+
		`"total_count":%d,"pagesize":%d,"prefix":"searchResults","class_prefix":""},"results":[%s]}`,
		from, pageSize, total, total, pageSize, strings.Join(rows, ","))})
}
