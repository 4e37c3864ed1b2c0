package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"assay/internal/config"
	"assay/internal/view"
)

// tradesCmd contains the commands for trades.
type tradesCmd struct {
	List     tradesListCmd     `cmd:"" default:"withargs" help:"List trades, newest first."`
	Show     tradesShowCmd     `cmd:"" help:"Show a trade."`
	Complete tradesCompleteCmd `cmd:"" help:"Record that the asset was delivered. This starts the hold."`
	Reverse  tradesReverseCmd  `cmd:"" help:"Reverse a trade: the buyer gets the money back."`
}

const tradesPath = "/api/trades"

// tradesListCmd lists trades.
type tradesListCmd struct {
	User  string `complete:"user" help:"Only trades of this user, as seller or buyer."`
	State string `enum:"pending,completed,reversed,settled," default:"" placeholder:"STATE" help:"Only trades in this state."`
	AppID int32  `complete:"game" placeholder:"ID" help:"Only this game, by its Steam app ID."`
	listFlags
}

func (*tradesListCmd) examples() []example {
	return []example{
		{"trades list --state pending", "list the trades that are not delivered yet"},
		{"trades list --user u1 --limit 1000 --json", "print the last 1000 trades of u1 as JSON"},
	}
}

func (c *tradesListCmd) Run(ctx context.Context, s *session) error {
	r := request{path: tradesPath, as: config.RolePlatform, query: filter("userId", c.User, "state", c.State, "appId", unlessZero(c.AppID))}
	header := []string{"TRADE", "STATE", "SELLER", "BUYER", "NAME", "PRICE", "FEE", "CREATED", "SETTLES"}
	return showList(ctx, s, c.listFlags, r, header, func(t *view.Trade) []string {
		return []string{
			t.ID, t.State, cell(t.SellerID), cell(t.BuyerID), cell(t.MarketHashName),
			minor(t.Price, string(t.Currency)), units(t.Fee, string(t.Currency)), moment(&t.CreatedAt), momentOrDash(t.SettlesAt),
		}
	})
}

// tradesShowCmd shows a trade.
type tradesShowCmd struct {
	ID string `arg:"" help:"Number of the trade."`
}

func (*tradesShowCmd) examples() []example {
	return []example{{"trades show 7", "show trade 7 with its fee and its times"}}
}

func (c *tradesShowCmd) Run(ctx context.Context, s *session) error {
	return oneTrade(ctx, s, http.MethodGet, segment(c.ID))
}

// tradesCompleteCmd completes a trade.
type tradesCompleteCmd struct {
	ID string `arg:"" help:"Number of the trade."`
}

func (*tradesCompleteCmd) examples() []example {
	return []example{{"trades complete 7", "record that the asset of trade 7 was delivered"}}
}

func (c *tradesCompleteCmd) Run(ctx context.Context, s *session) error {
	return oneTrade(ctx, s, http.MethodPost, segment(c.ID)+"/complete")
}

// tradesReverseCmd reverses a trade.
type tradesReverseCmd struct {
	ID string `arg:"" help:"Number of the trade."`
}

func (*tradesReverseCmd) examples() []example {
	return []example{{"trades reverse 7", "refund the buyer of trade 7; a settled trade cannot be reversed"}}
}

func (c *tradesReverseCmd) Run(ctx context.Context, s *session) error {
	return oneTrade(ctx, s, http.MethodPost, segment(c.ID)+"/reverse")
}

// oneTrade sends a request about a trade and prints the response.
func oneTrade(ctx context.Context, s *session, method, path string) error {
	r := request{method: method, path: tradesPath + "/" + path, as: config.RolePlatform}
	return show(ctx, s, r, func(w io.Writer, t *view.Trade) {
		_, _ = fmt.Fprintf(w, "trade %s is %s\n", t.ID, t.State)
		table(w, [][]string{
			{"item", fmt.Sprintf("%s (game %d), amount %s", nameAndPhase(t.MarketHashName, t.Phase), t.AppID, count(t.Amount))},
			{"seller", printable(t.SellerID)},
			{"buyer", printable(t.BuyerID)},
			{"price", minor(t.Price, string(t.Currency))},
			{"fee", fmt.Sprintf("%s by rule %s of version %d; the seller gets %s", minor(t.Fee, string(t.Currency)), printable(t.FeeRule), t.FeeVersion, minor(t.Net, string(t.Currency)))},
			{"created", moment(&t.CreatedAt)},
			{"completed", moment(t.CompletedAt)},
			{"settles", moment(t.SettlesAt)},
			{"settled", moment(t.SettledAt)},
			{"reversed", moment(t.ReversedAt)},
		})
	})
}

func momentOrDash(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return moment(t)
}
