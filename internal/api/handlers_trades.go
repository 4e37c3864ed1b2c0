package api

import (
	"context"
	"net/http"

	"assay/internal/inventory"
	"assay/internal/once"
	"assay/internal/strictjson"
	"assay/internal/view"
)

// purchaseBody describes what POST /api/listings/{id}/purchase takes.
type purchaseBody struct {
	BuyerID string `json:"buyerId" doc:"The platform's id of the buyer, who is created if new."`
}

func (s *server) purchase(w http.ResponseWriter, c *call) error {
	in := strictjson.NewReader(c.Body)
	var buyer string
	has := false
	in.Object([]string{"buyerId"}, func(member string) bool {
		if member != "buyerId" {
			return false
		}
		has = true
		buyer, _ = in.Text(1, inventory.MaxUserID)
		return true
	})
	in.Require("", "buyerId", has)
	if err := in.Finish(); err != nil {
		return err
	}
	return s.once(w, c, buyer, func(seal seal) error {
		id, err := c.idOf("listing")
		if err != nil {
			return err
		}
		return s.Trading.Purchase(c.Context(), id, buyer, func(tx once.Keeper, t view.Trade) error {
			return seal(tx, http.StatusCreated, "/api/trades/"+t.ID, t)
		})
	})
}

func (s *server) trades(w http.ResponseWriter, c *call) error {
	f := view.TradeFilter{UserID: c.values["userId"], AppID: int32(c.values.number("appId")), State: c.values["state"]}
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
