package refresh

import (
	"errors"
	"strconv"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// All quotes of an item are one row of item_quotes: a batch reads and writes 500 rows
// instead of one per item and market. The column is a JSON array with an array of
//
//	market id, currency, ask, bid, sale, listings, sales, sales window in seconds,
//	market time in hours since 1970, fetched at in microseconds, reason
//
// per market, ordered by market id. The view market_snapshot shows a row per item and market.

const (
	quotesTypes    = "item_id bigint, quotes text"
	writeQuotesSQL = `INSERT INTO item_quotes (item_id, quotes) `
	replaceOfOld   = ` ON CONFLICT (item_id) DO UPDATE SET quotes = excluded.quotes`

	updateQuotesSQL   = `UPDATE item_quotes SET quotes = v.column2 FROM (`
	updateQuotesWhere = `) AS v WHERE item_quotes.item_id = v.column1`
)

var errQuotes = errors.New("stored quotes are damaged")

// encodeQuotes encodes the quotes of an item for storage.
func encodeQuotes(quotes []MarketSnapshot) string {
	const room = 64 // bytes of most records
	b := make([]byte, 0, 2+room*len(quotes))
	b = append(b, '[')
	for i := range quotes {
		q := &quotes[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), q.MarketID, 10)
		b = append(append(append(b, `,"`...), q.Currency...), '"')
		hours := int64(0)
		if !q.MarketTime.IsZero() {
			hours = q.MarketTime.Unix() / 3600
		}
		for _, n := range [...]int64{
			int64(q.Ask), int64(q.Bid), int64(q.Sale), q.Listings, q.Sales, int64(q.SalesWindow / time.Second), hours, db.Micros(q.FetchedAt),
		} {
			b = strconv.AppendInt(append(b, ','), n, 10)
		}
		b = append(append(append(b, `,"`...), q.Reason...), '"', ']')
	}
	return string(append(b, ']'))
}

// Price returns the price of the market in its history: the lowest ask, else the last sale, else 0.
func (q *MarketSnapshot) Price() money.Micro {
	if q.Ask == 0 {
		return q.Sale
	}
	return q.Ask
}

// DecodeQuotes decodes the result of encodeQuotes. An empty text contains no quotes.
func DecodeQuotes(text string) ([]MarketSnapshot, error) {
	if text == "" || text == "[]" {
		return nil, nil
	}
	r := quoteReader{text: text}
	out := make([]MarketSnapshot, 0, len(text)/48+1)
	for sep := byte('['); r.text != "]" && !r.bad; sep = ',' {
		r.skip(sep)
		q := MarketSnapshot{MarketID: r.number('[')}
		q.Currency = money.Currency(r.word())
		q.Ask, q.Bid, q.Sale = money.Micro(r.number(',')), money.Micro(r.number(',')), money.Micro(r.number(','))
		q.Listings, q.Sales = r.number(','), r.number(',')
		q.SalesWindow = time.Duration(r.upTo(maxSpan)) * time.Second
		if hours := r.upTo(maxSpan); hours != 0 {
			q.MarketTime = time.Unix(hours*3600, 0).UTC()
		}
		q.FetchedAt = db.Moment(r.number(','))
		q.Reason = pricing.Reason(r.word())
		r.skip(']')
		out = append(out, q)
	}
	if r.bad {
		return nil, errQuotes
	}
	return out, nil
}

// quoteReader parses the result of encodeQuotes, but no other JSON. After an error it sets bad,
// so that callers need not check every step.
type quoteReader struct {
	text string
	bad  bool
}

// skip consumes the character c.
func (r *quoteReader) skip(c byte) {
	if len(r.text) == 0 || r.text[0] != c {
		r.bad = true
		return
	}
	r.text = r.text[1:]
}

// number consumes the given character and the integer that follows it.
func (r *quoteReader) number(after byte) (n int64) {
	r.skip(after)
	minus := len(r.text) > 0 && r.text[0] == '-'
	if minus {
		r.text = r.text[1:]
	}
	const most = 19 // digits of an int64
	end := 0
	for end < len(r.text) && end < most && r.text[end] >= '0' && r.text[end] <= '9' {
		n = n*10 + int64(r.text[end]-'0')
		end++
	}
	r.bad = r.bad || end == 0 || n < 0
	r.text = r.text[end:]
	if minus {
		return -n
	}
	return n
}

// maxSpan is the longest sales window, in seconds, and the latest market time, in hours
// since 1970.
const maxSpan = 1<<32 - 1

// upTo consumes a comma and an integer from 0 to limit.
func (r *quoteReader) upTo(limit int64) int64 {
	n := r.number(',')
	if n < 0 || n > limit {
		r.bad = true
		return 0
	}
	return n
}

// word consumes a comma and a quoted word without escapes.
func (r *quoteReader) word() string {
	r.skip(',')
	r.skip('"')
	for end := range len(r.text) {
		if r.text[end] == '"' {
			word := r.text[:end]
			r.text = r.text[end+1:]
			return word
		}
	}
	r.bad = true
	return ""
}

// itemQuotes holds all quotes of an item.
type itemQuotes struct {
	item   int64
	quotes []MarketSnapshot
}

var (
	quotesBulk       = db.NewBulk(writeQuotesSQL, quotesTypes, replaceOfOld)
	quoteUpdatesBulk = db.NewBulk(updateQuotesSQL, quotesTypes, updateQuotesWhere)
)

// writeQuoteRows writes the quotes of items.
func writeQuoteRows(t *db.Tx, items []itemQuotes) error {
	_, err := t.WriteRows(quotesBulk, quoteTable(items))
	return err
}

// updateQuoteRows writes the quotes of items that already have a row. An upsert would also
// lock each row first, and PostgreSQL writes such locks to its log. updateQuoteRows returns
// ErrConflict if a row is missing.
func updateQuoteRows(t *db.Tx, items []itemQuotes) error {
	n, err := t.WriteRows(quoteUpdatesBulk, quoteTable(items))
	if err == nil && n != int64(len(items)) {
		err = ErrConflict
	}
	return err
}

func quoteTable(items []itemQuotes) *db.Table {
	rows := db.NewTable(quotesTypes, len(items))
	for i := range items {
		rows.Int(items[i].item)
		rows.Text(encodeQuotes(items[i].quotes))
	}
	return rows
}
