package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"assay/internal/config"
	"assay/internal/money"
	"assay/internal/view"
)

// listingsCmd contains the commands for listings.
type listingsCmd struct {
	List   listingsListCmd   `cmd:"" default:"withargs" help:"List listings, newest first."`
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
	AppID int32  `complete:"game" placeholder:"ID" help:"Only this game, by its Steam app ID."`
	listFlags
}

func (*listingsListCmd) examples() []example {
	return []example{
		{"listings list", "list the 20 newest listings"},
		{"listings list --user u1 --state active --json", "print the active listings of u1 as JSON"},
	}
}

func (c *listingsListCmd) Run(ctx context.Context, s *session) error {
	r := request{
		path: listingsPath, as: config.RolePlatform,
		query: filter("userId", c.User, "state", c.State, "name", c.Name, "appId", unlessZero(c.AppID)),
	}
	header := []string{"LISTING", "STATE", "SELLER", "GAME", "NAME", "AMOUNT", "PRICE", "CREATED", "TRADE"}
	return showList(ctx, s, c.listFlags, r, header, func(l *view.Listing) []string {
		return []string{
			l.ID, l.State, cell(l.UserID), fmt.Sprint(l.AppID), cell(l.MarketHashName), count(l.Amount),
			minor(l.Price, string(l.Currency)), moment(&l.CreatedAt), orDash(l.TradeID),
		}
	})
}

// listingsShowCmd shows a listing.
type listingsShowCmd struct {
	ID string `arg:"" help:"Number of the listing."`
}

func (*listingsShowCmd) examples() []example {
	return []example{{"listings show 12", "show listing 12"}}
}

func (c *listingsShowCmd) Run(ctx context.Context, s *session) error {
	return oneListing(ctx, s, http.MethodGet, c.ID, nil)
}

// listingsPriceCmd changes the price of a listing.
type listingsPriceCmd struct {
	ID    string `arg:"" help:"Number of the listing."`
	Price int64  `arg:"" help:"New price in minor units of the listing's currency, such as 1990 for 19.90 USD."`
}

func (*listingsPriceCmd) examples() []example {
	return []example{{"listings price 12 1990", "set the price of listing 12 to 1990 minor units"}}
}

func (c *listingsPriceCmd) Run(ctx context.Context, s *session) error {
	return oneListing(ctx, s, http.MethodPatch, c.ID, map[string]int64{"price": c.Price})
}

// listingsCancelCmd cancels listings.
type listingsCancelCmd struct {
	IDs []string `arg:"" name:"id" help:"Numbers of listings, up to 500."`
}

func (*listingsCancelCmd) examples() []example {
	return []example{
		{"listings cancel 12", "cancel listing 12; a sold listing cannot be cancelled"},
		{"listings cancel 12 13 14", "cancel three listings; each is cancelled independently"},
	}
}

func (c *listingsCancelCmd) Run(ctx context.Context, s *session) error {
	if len(c.IDs) == 1 {
		return oneListing(ctx, s, http.MethodDelete, c.IDs[0], nil)
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	type cancelled struct {
		Items []view.Withdrawn `json:"items"`
	}
	r := request{method: http.MethodPost, path: listingsPath + "/cancel", as: config.RolePlatform, body: map[string][]string{"ids": c.IDs}}
	done, err := call[cancelled](ctx, api, r)
	if err != nil {
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

// oneListing sends a request about a listing and prints the response.
func oneListing(ctx context.Context, s *session, method, id string, body any) error {
	r := request{method: method, path: listingsPath + "/" + segment(id), as: config.RolePlatform, body: body}
	return show(ctx, s, r, func(w io.Writer, l *view.Listing) {
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

// minor formats an amount in minor units with its currency, such as "19.90 USD" for 1990 or
// "1990 JPY".
func minor(n int64, currency string) string { return units(n, currency) + " " + printable(currency) }

// units is like minor, but without the currency.
func units(n int64, currency string) string { return money.Currency(currency).Minor(n) }

// nameAndPhase formats an item's name, with its phase if it has one.
func nameAndPhase(name, phase string) string {
	if phase == "" {
		return printable(name)
	}
	return printable(name) + ", " + printable(phase)
}
