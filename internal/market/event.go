package market

import (
	"strconv"

	"assay/internal/db"
	"assay/internal/event"
)

// reportEnd writes an event of a listing that has just ended.
func reportEnd(tx *db.Tx, l *Listing) error {
	e := event.ListingEnded{
		ListingID: strconv.FormatInt(l.ID, 10), SellerID: l.Seller, AppID: l.AppID, MarketHashName: l.Item.Name, Phase: l.Item.Phase,
		ContextID: l.ContextID, AssetID: l.AssetID, Price: l.Price, Currency: string(l.Currency), State: string(l.State),
	}
	if l.TradeID != 0 {
		e.TradeID = strconv.FormatInt(l.TradeID, 10)
	}
	return event.Add(tx, e)
}

// reportSale writes an event of the listing that a new trade sold.
func reportSale(tx *db.Tx, t *Trade) error {
	return reportEnd(tx, &Listing{
		ID: t.ListingID, Seller: t.Seller, Place: t.Place, Item: t.Item, Price: t.Price, Currency: t.Currency, State: Sold, TradeID: t.ID,
	})
}

// reportMove writes an event of a trade whose state has just changed.
func reportMove(tx *db.Tx, t *Trade) error {
	return event.Add(tx, event.TradeMoved{
		TradeID: strconv.FormatInt(t.ID, 10), ListingID: strconv.FormatInt(t.ListingID, 10), SellerID: t.Seller, BuyerID: t.Buyer,
		AppID: t.AppID, MarketHashName: t.Item.Name, Phase: t.Item.Phase, ContextID: t.ContextID, AssetID: t.AssetID,
		Price: t.Price, Fee: t.Fee, Net: t.Net, Currency: string(t.Currency), State: string(t.State),
	})
}
