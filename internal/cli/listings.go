package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"assay/internal/money"
	"assay/internal/view"
)

// listingsCmd holds the commands about listings.
type listingsCmd struct {
	List   listingsListCmd   `cmd:"" default:"withargs" help:"List listings, the newest first."`
	Show   listingsShowCmd   `cmd:"" help:"Show a listing."`
	Price  listingsPriceCmd  `cmd:"" help:"Change the price of an active listing."`
	Cancel listingsCancelCmd `cmd:"" help:"Cancel listings."`
}

const listingsPath = "/api/listings"

// listingsListCmd lists listings.
type listingsListCmd struct {
	User  string `complete:"user" help:"Only listings of this seller."`
	State string `enum:"active,reserved,sold,cancelled,expired," default:"" placeholder:"STATE" help:"Only listings in this state."`
	Name  string `help:"Only listings of this market hash name."`
	AppID int32  `complete:"game" placeholder:"ID" help:"Only this game, by its Steam number."`
	listFlags
}

func (*listingsListCmd) examples() []example {
	return []example{
		{"listings list", "list the newest 20 listings"},
		{"listings list --user u1 --state active --json", "print the active listings of u1 as JSON"},
	}
}

// Run lists.
func (c *listingsListCmd) Run(ctx context.Context, s *session) error {
	if err := c.check("assay listings list --help"); err != nil {
		return err
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	q := filter("userId", c.User, "state", c.State, "name", c.Name)
	if c.AppID != 0 {
		q.Set("appId", strconv.Itoa(int(c.AppID)))
	}
	page, err := listAll[view.Listing](ctx, api, request{path: listingsPath, query: q, with: api.platform}, c.Limit)
	if err != nil {
		return err
	}
	return s.out.result(page, func(w io.Writer) {
		rows := [][]string{{"LISTING", "STATE", "SELLER", "GAME", "NAME", "AMOUNT", "PRICE", "CREATED", "TRADE"}}
		for _, l := range page.Items {
			rows = append(rows, []string{
				l.ID, l.State, cell(l.UserID), fmt.Sprint(l.AppID), cell(l.MarketHashName), count(l.Amount),
				minor(l.Price, string(l.Currency)), moment(&l.CreatedAt), orDash(l.TradeID),
			})
		}
		table(w, rows)
		_, _ = io.WriteString(w, moreText(page))
	})
}

// listingsShowCmd shows a listing.
type listingsShowCmd struct {
	ID string `arg:"" help:"Number of the listing."`
}

func (*listingsShowCmd) examples() []example {
	return []example{{"listings show 12", "show listing 12"}}
}

// Run shows it.
func (c *listingsShowCmd) Run(ctx context.Context, s *session) error {
	return oneListing(ctx, s, http.MethodGet, c.ID, nil)
}

// listingsPriceCmd changes the price of a listing.
type listingsPriceCmd struct {
	ID    string `arg:"" help:"Number of the listing."`
	Price int64  `arg:"" help:"New price in minor units of the listing's currency: 1990 is 19.90 USD."`
}

func (*listingsPriceCmd) examples() []example {
	return []example{{"listings price 12 1990", "offer listing 12 for 1990 minor units from now on"}}
}

// Run changes it.
func (c *listingsPriceCmd) Run(ctx context.Context, s *session) error {
	return oneListing(ctx, s, http.MethodPatch, c.ID, strings.NewReader(fmt.Sprintf(`{"price":%d}`, c.Price)))
}

// listingsCancelCmd cancels listings.
type listingsCancelCmd struct {
	IDs []string `arg:"" name:"id" help:"Numbers of listings, up to 500."`
}

func (*listingsCancelCmd) examples() []example {
	return []example{
		{"listings cancel 12", "cancel listing 12; a sold one cannot be cancelled"},
		{"listings cancel 12 13 14", "cancel three, each for itself"},
	}
}

// Run cancels it.
func (c *listingsCancelCmd) Run(ctx context.Context, s *session) error {
	if len(c.IDs) == 1 {
		return oneListing(ctx, s, http.MethodDelete, c.IDs[0], nil)
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string][]string{"ids": c.IDs})
	if err != nil {
		return err
	}
	var done struct {
		Items []view.Withdrawn `json:"items"`
	}
	if err := api.do(ctx, request{method: http.MethodPost, path: listingsPath + "/cancel", with: api.platform, body: bytes.NewReader(body)}, &done); err != nil {
		return err
	}
	refused := 0
	for _, i := range done.Items {
		if i.Error != nil {
			refused++
		}
	}
	err = s.out.result(done, func(w io.Writer) {
		for _, i := range done.Items {
			if i.Error == nil {
				_, _ = fmt.Fprintf(w, "listing %s is cancelled\n", printable(i.ID))
			} else {
				_, _ = fmt.Fprintf(w, "listing %s: %s (%s)\n", printable(i.ID), printable(i.Error.Detail), printable(i.Error.Code))
			}
		}
	})
	if err == nil && refused > 0 {
		err = fmt.Errorf("%d of %d listings could not be cancelled", refused, len(done.Items))
	}
	return err
}

// oneListing sends a request about a listing and prints the listing.
func oneListing(ctx context.Context, s *session, method, id string, body io.Reader) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	var l view.Listing
	if err := api.do(ctx, request{method: method, path: listingsPath + "/" + segment(id), with: api.platform, body: body}, &l); err != nil {
		return err
	}
	return s.out.result(l, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "listing %s is %s\n", l.ID, l.State)
		table(w, [][]string{
			{"item", fmt.Sprintf("%s (game %d)", nameAndPhase(l.MarketHashName, l.Phase), l.AppID)},
			{"asset", fmt.Sprintf("%s, context %s, amount %s", printable(l.AssetID), printable(l.ContextID), count(l.Amount))},
			{"seller", printable(l.UserID)},
			{"price", minor(l.Price, string(l.Currency))},
			{"created", moment(&l.CreatedAt)},
			{"ended", moment(l.EndedAt)},
			{"trade", orDash(l.TradeID)},
		})
	})
}

// filter returns the query of name, value, name, value and so on, without the
// empty values.
func filter(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// minor writes an amount in minor units as people do, and its currency: 1990 is
// "19.90 USD", or "1990 JPY".
func minor(n int64, currency string) string { return units(n, currency) + " " + printable(currency) }

// units is minor without the currency.
func units(n int64, currency string) string { return money.Currency(currency).Minor(n) }

// nameAndPhase writes an item's name with its phase, if it has one.
func nameAndPhase(name, phase string) string {
	if phase == "" {
		return printable(name)
	}
	return printable(name) + ", " + printable(phase)
}
