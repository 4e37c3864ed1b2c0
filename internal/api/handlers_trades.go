package api

import (
	"context"
	"io"
	"net/http"

	"assay/internal/db"
	"assay/internal/market"
	"assay/internal/strictjson"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet/fee"
)

// tradeHandlers serve trades.
type tradeHandlers struct {
	*Deps
	once *once
}

// purchaseBody describes the body of POST /api/listings/{id}/purchase. decodePurchase
// decodes it.
type purchaseBody struct {
	BuyerID       string `json:"buyerId"`
	PaymentMethod string `json:"paymentMethod,omitempty"`
	Country       string `json:"country,omitempty"`
}

func (h tradeHandlers) purchase(c *call) (any, error) {
	p, err := decodePurchase(c.Body)
	if err != nil {
		return nil, err
	}
	p.Scope, p.Key = walletScope(c.Method, c.route, c.role, p.Buyer), c.onceKey
	return h.once.do(c, p.Buyer, func(seal seal) (err error) {
		if p.ListingID, err = c.idOf("listing"); err != nil {
			return err
		}
		return h.Market.Purchase(c.Context(), p, func(tx *db.Tx, sold market.Trade) error {
			t := view.TradeOf(&sold)
			return seal(tx, http.StatusCreated, "/api/trades/"+t.ID, t)
		})
	})
}

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

func (h tradeHandlers) trades(c *call) (any, error) {
	f := view.TradeFilter{
		UserID: c.values["userId"], AppID: int32(c.values.number("appId")), State: c.values["state"],
		From: c.values.moment("from"), To: c.values.moment("to"),
	}
	return h.Readers.Market.Trades(c.Context(), f, c.values["cursor"], c.limit())
}

func (h tradeHandlers) trade(c *call) (any, error) {
	id, err := c.idOf("trade")
	if err != nil {
		return nil, err
	}
	return h.Readers.Market.Trade(c.Context(), id)
}

// moveTrade returns a handler that calls a method of the market service for a trade.
func (h tradeHandlers) moveTrade(move func(ctx context.Context, id int64) (market.Trade, error)) handler {
	return func(c *call) (any, error) {
		id, err := c.idOf("trade")
		if err != nil {
			return nil, err
		}
		t, err := move(c.Context(), id)
		return view.TradeOf(&t), err
	}
}
