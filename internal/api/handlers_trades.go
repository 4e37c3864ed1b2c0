package api

import (
	"context"
	"io"
	"net/http"

	"assay/internal/idempotency"
	"assay/internal/market"
	"assay/internal/strictjson"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet/fee"
)

// purchaseBody describes what POST /api/listings/{id}/purchase takes.
type purchaseBody struct {
	BuyerID       string `json:"buyerId"`
	PaymentMethod string `json:"paymentMethod,omitempty"`
	Country       string `json:"country,omitempty"`
}

func (s *server) purchase(w http.ResponseWriter, c *call) error {
	p, err := decodePurchase(c.Body)
	if err != nil {
		return err
	}
	p.Scope, p.Key = walletScope(c.Method, c.route, c.role, p.Buyer), c.onceKey
	return s.once(w, c, p.Buyer, func(seal seal) (err error) {
		if p.ListingID, err = c.idOf("listing"); err != nil {
			return err
		}
		return s.Trading.Purchase(c.Context(), p, func(tx idempotency.ResponseStore, t view.Trade) error {
			return seal(tx, http.StatusCreated, "/api/trades/"+t.ID, t)
		})
	})
}

// decodePurchase reads who buys, and how.
func decodePurchase(body io.Reader) (p market.Purchase, err error) {
	in := strictjson.NewReader(body)
	has := false
	in.Object([]string{"buyerId", "paymentMethod", "country"}, func(member string) bool {
		switch member {
		case "buyerId":
			has = true
			p.Buyer, _ = in.Text(1, user.MaxID)
		case "paymentMethod":
			p.PaymentMethod = optional(in, fee.MaxID)
		case "country":
			p.Country = optional(in, fee.MaxID)
		default:
			return false
		}
		return true
	})
	in.Require("", "buyerId", has)
	return p, in.Finish()
}

func (s *server) trades(w http.ResponseWriter, c *call) error {
	f := view.TradeFilter{
		UserID: c.values["userId"], AppID: int32(c.values.number("appId")), State: c.values["state"],
		From: c.values.moment("from"), To: c.values.moment("to"),
	}
	page, err := s.Reader.Trades(c.Context(), f, c.values["cursor"], c.limit())
	return answer(w, page, err)
}

func (s *server) trade(w http.ResponseWriter, c *call) error {
	id, err := c.idOf("trade")
	if err != nil {
		return err
	}
	trade, err := s.Reader.Trade(c.Context(), id)
	return answer(w, trade, err)
}

// moveTrade answers with a trade that was moved on.
func (s *server) moveTrade(move func(ctx context.Context, id int64) (view.Trade, error)) func(http.ResponseWriter, *call) error {
	return func(w http.ResponseWriter, c *call) error {
		id, err := c.idOf("trade")
		if err != nil {
			return err
		}
		trade, err := move(c.Context(), id)
		return answer(w, trade, err)
	}
}
