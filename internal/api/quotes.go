package api

import (
	"io"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/strictjson"
)

// Limits of the markets in a request for quotes.
const (
	maxMarkets    = 100
	maxMarketName = 128
)

// quotesBody describes the body of POST /api/prices/quotes. decodeQuotes decodes it.
type quotesBody struct {
	Items   []lookupKey `json:"items"`
	Markets []string    `json:"markets,omitempty"`
}

func (h itemHandlers) quotes(c *call) (any, error) {
	keys, markets, err := decodeQuotes(c.Body)
	if err != nil {
		return nil, err
	}
	return h.Readers.Items.Quotes(c.Context(), keys, markets, c.currency())
}

// decodeQuotes decodes the body of a request for quotes. Without the member markets it
// returns nil markets.
func decodeQuotes(body io.Reader) (keys []catalog.Key, markets []string, err error) {
	in := strictjson.NewReader(body)
	hasItems := false
	in.Object([]string{"items", "markets"}, func(member string) bool {
		switch member {
		case "items":
			hasItems = true
			keys = readKeys(in)
		case "markets":
			markets = []string{}
			in.Array(func(i int) {
				if i == maxMarkets {
					in.Stop(fault.New(fault.TooLarge, "too_many_items", "The request has too many markets. Send at most %d.", maxMarkets))
					return
				}
				market, _ := in.Text(1, maxMarketName)
				markets = append(markets, market)
			})
		default:
			return false
		}
		return true
	})
	in.Require("", "items", hasItems)
	return keys, markets, in.Finish()
}
