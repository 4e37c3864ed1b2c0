package event

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"assay/internal/money"
)

// Text describes an event other than price changes for people. It returns "" for an unknown
// kind.
func Text(kind Kind, data []byte) string {
	var d struct {
		Provider, Host, Market, Budget, Detail, JobID, UserID, Status, TradeID, ListingID, State, MarketHashName, Phase, SellerID string
		TotalValueDecimal, Currency, ContextID                                                                                    string
		Left, Limit, TotalItems, UpdatedItems, AppID, Rows, UnpricedRows, Price                                                   int64
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return ""
	}
	place := strings.Join(slices.DeleteFunc([]string{d.Provider, d.Host, d.Market}, func(s string) bool { return s == "" }), " ")
	price := money.Currency(d.Currency).Minor(d.Price) + " " + d.Currency
	switch kind {
	case JobFinished, JobPartial, JobFailed:
		return "run " + d.JobID + ": " + humanize.Comma(d.UpdatedItems) + " of " + humanize.Comma(d.TotalItems) + " items priced"
	case BudgetIsLow:
		return place + ": " + humanize.Comma(d.Left) + " of " + humanize.Comma(d.Limit) + " left (" + d.Budget + ")"
	case Degraded, WentDown, Quarantined, CameUp:
		return place + ": " + strings.TrimPrefix(d.Detail, d.Provider+": "+d.Market+": quarantined: ")
	case LedgerHasProblem:
		return "user " + d.UserID + ": " + d.Status
	case InventoryIsPriced:
		return "inventory of " + d.UserID + ", game " + strconv.FormatInt(d.AppID, 10) + ", context " + d.ContextID + ": " +
			humanize.Comma(d.Rows-d.UnpricedRows) + " of " + humanize.Comma(d.Rows) + " rows priced, " + d.TotalValueDecimal + " " + d.Currency
	case ListingSold, ListingCancelled, ListingExpired:
		return "listing " + d.ListingID + " of the seller " + d.SellerID + ", " + strings.TrimSpace(d.MarketHashName+" "+d.Phase) + ", " + price + ": " + d.State
	case TradeCompleted, TradeReversed, TradeSettled:
		return "trade " + d.TradeID + " of the seller " + d.SellerID + ", " + strings.TrimSpace(d.MarketHashName+" "+d.Phase) + ", " + price + ": " + d.State
	case TradeIsOverdue:
		return "trade " + d.TradeID + ": still " + d.State
	}
	return ""
}
