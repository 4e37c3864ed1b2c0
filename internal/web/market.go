package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"assay/internal/fault"
	"assay/internal/market"
	"assay/internal/view"
)

const tradesPerPage = 50

// marketFilter is the filter of the lists of listings and trades.
type marketFilter struct {
	List   listState
	States []tab
	Action string // path of the list
}

// marketFilterOf reads the filters of a list. States are the valid states.
func marketFilterOf(r *http.Request, states ...string) (marketFilter, error) {
	f := marketFilter{List: listOf(r, "state", "user"), Action: r.URL.Path, States: []tab{}}
	state := f.List.Get("state")
	if state != "" && !slices.Contains(states, state) {
		return f, fault.New(fault.Invalid, "invalid_parameters", "Unknown state. Choose a state from the list.")
	}
	f.States = append(f.States, f.List.Tab("All", "state", ""))
	for _, name := range states {
		kind := "trade"
		if f.Action == "/listings" {
			kind = "listing"
		}
		f.States = append(f.States, f.List.Tab(badgeOf(kind, name).Text, "state", name))
	}
	return f, checkSearch(f.List.Get("user"))
}

// listingsPage lists listings, newest first.
type listingsPage struct {
	frame
	Filter   marketFilter
	Listings []view.Listing
	Empty    emptyState
	API      apiCall
}

func (s *marketPages) listings(w http.ResponseWriter, r *http.Request, sess session) error {
	f, err := marketFilterOf(r, string(market.Active), string(market.Sold), string(market.Cancelled), string(market.Expired))
	if err != nil {
		return err
	}
	found, err := s.Market.Listings(r.Context(), view.ListingFilter{UserID: f.List.Get("user"), State: f.List.Get("state")}, r.URL.Query().Get("cursor"), tradesPerPage)
	if err != nil {
		return err
	}
	page := listingsPage{
		frame: s.frame("Listings", "listings", &sess), Filter: f, Listings: found.Items,
		Empty: emptyState{"No listing yet", "A listing is created with POST /api/listings."},
		API:   apiCall{Method: http.MethodGet, Path: "/api/listings"},
	}
	if f.List.Clear() != "" {
		page.Empty = emptyState{"Nothing found", "No listing matches the filter."}
	}
	page.Filter.List = f.List.until(found.NextCursor)
	return s.show(w, r, "listings", page)
}

// listingPage shows a listing.
type listingPage struct {
	frame
	Listing view.Listing
	API     apiCall
}

func (s *marketPages) listing(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := marketID(r, "listing")
	if err != nil {
		return err
	}
	found, err := s.Market.Listing(r.Context(), id)
	if err != nil {
		return err
	}
	return s.show(w, r, "listing", listingPage{
		frame: s.frame("Listing "+found.ID, "listings", &sess), Listing: found,
		API: apiCall{Method: http.MethodGet, Path: "/api/listings/" + found.ID},
	})
}

// marketID returns the ID of the listing or trade in the path.
func marketID(r *http.Request, what string) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, fault.New(fault.NotFound, what+"_not_found", "There is no such %s.", what)
	}
	return id, nil
}

// tradesPage lists trades, newest first.
type tradesPage struct {
	frame
	Filter marketFilter
	Trades []view.Trade
	Empty  emptyState
	API    apiCall
}

func (s *marketPages) trades(w http.ResponseWriter, r *http.Request, sess session) error {
	f, err := marketFilterOf(r, string(market.Pending), string(market.Completed), string(market.Settled), string(market.Reversed))
	if err != nil {
		return err
	}
	found, err := s.Market.Trades(r.Context(), view.TradeFilter{UserID: f.List.Get("user"), State: f.List.Get("state")}, r.URL.Query().Get("cursor"), tradesPerPage)
	if err != nil {
		return err
	}
	page := tradesPage{
		frame: s.frame("Trades", "trades", &sess), Filter: f, Trades: found.Items,
		Empty: emptyState{"No trade yet", "A trade is created when a user buys a listing with POST /api/listings/{id}/purchase."},
		API:   apiCall{Method: http.MethodGet, Path: "/api/trades"},
	}
	if f.List.Clear() != "" {
		page.Empty = emptyState{"Nothing found", "No trade matches the filter."}
	}
	page.Filter.List = f.List.until(found.NextCursor)
	return s.show(w, r, "trades", page)
}

// tradePage shows a trade.
type tradePage struct {
	frame
	Trade view.Trade
	API   apiCall
}

// CanComplete reports whether the trade can be completed.
func (p tradePage) CanComplete() bool { return p.Trade.State == string(market.Pending) }

// CanReverse reports whether the trade can be reversed.
func (p tradePage) CanReverse() bool {
	return p.Trade.State == string(market.Pending) || p.Trade.State == string(market.Completed)
}

func (s *marketPages) trade(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := marketID(r, "trade")
	if err != nil {
		return err
	}
	found, err := s.Market.Trade(r.Context(), id)
	if err != nil {
		return err
	}
	return s.show(w, r, "trade", tradePage{
		frame: s.frame("Trade "+found.ID, "trades", &sess), Trade: found,
		API: apiCall{Method: http.MethodGet, Path: "/api/trades/" + found.ID},
	})
}

func (s *marketPages) completeTrade(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.moveTrade(w, r, sess, s.Trades.Complete, func(t view.Trade) (confirmation, string) {
		net := minor(t.Net, t.Currency).Short
		return confirmation{
			Question: "Complete trade " + t.ID + "?", Text: "The asset was handed over. The credit of the seller, " + net + ", is held until the trade settles.", Button: "Complete trade " + t.ID,
		}, "Trade " + t.ID + " is completed. The credit of " + net + " is held until it settles."
	})
}

func (s *marketPages) reverseTrade(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.moveTrade(w, r, sess, s.Trades.Reverse, func(t view.Trade) (confirmation, string) {
		price := minor(t.Price, t.Currency).Short
		return confirmation{
			Question: "Reverse trade " + t.ID + "?", Text: "The buyer gets " + price + " back from the held credit of the seller. A reversal cannot be undone.", Button: "Reverse trade " + t.ID, Danger: true,
		}, "Trade " + t.ID + " is reversed. The buyer has " + price + " back."
	})
}

// moveTrade changes the state of the trade in the path, after a confirmation.
func (s *marketPages) moveTrade(w http.ResponseWriter, r *http.Request, sess session, move func(context.Context, int64) (market.Trade, error), words func(view.Trade) (confirmation, string)) error {
	id, err := marketID(r, "trade")
	if err != nil {
		return err
	}
	found, err := s.Market.Trade(r.Context(), id)
	if err != nil {
		return err
	}
	question, message := words(found)
	if ok, err := s.confirmed(w, r, sess, question); !ok {
		return err
	}
	_, err = move(r.Context(), id)
	return s.done(w, r, sess, flash{Good: true, Text: message}, err)
}

// sellersPage lists users who have sold or offered something.
type sellersPage struct {
	frame
	Sellers []view.Seller
	List    listState
	Empty   emptyState
}

func (s *marketPages) sellers(w http.ResponseWriter, r *http.Request, sess session) error {
	list := listOf(r, "q")
	if err := checkSearch(list.Get("q")); err != nil {
		return err
	}
	found, err := s.Market.Sellers(r.Context(), list.Get("q"), r.URL.Query().Get("cursor"), tradesPerPage)
	if err != nil {
		return err
	}
	page := sellersPage{
		frame: s.frame("Sellers", "sellers", &sess), Sellers: found.Items, List: list.until(found.NextCursor),
		Empty: emptyState{"No seller yet", "A user appears here with the first listing."},
	}
	if list.Clear() != "" {
		page.Empty = emptyState{"Nothing found", "No seller has this text in the id. Case does not matter."}
	}
	return s.show(w, r, "sellers", page)
}
