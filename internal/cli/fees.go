package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"assay/internal/config"
	"assay/internal/view"
	"assay/internal/wallet/fee"
)

// feesCmd contains the commands for payment fees.
type feesCmd struct {
	Refresh  feesRefreshCmd  `cmd:"" help:"Load the fee rules from PAYMENT_FEE_RULES and activate them."`
	Show     feesShowCmd     `cmd:"" help:"Show the active fee rules and earlier versions."`
	Rollback feesRollbackCmd `cmd:"" help:"Activate an earlier version of the fee rules again."`
	Quote    feesQuoteCmd    `cmd:"" help:"Show the fee of a payment, its rule and its calculation."`
}

const feeRulesPath = "/api/functions/admin/payment-fee-rules"

func feesRequest(method, path string, query url.Values) request {
	return request{method: method, path: feeRulesPath + path, query: query, as: config.RoleAdmin}
}

// feesRefreshCmd activates the rules in PAYMENT_FEE_RULES.
type feesRefreshCmd struct {
	DryRun           bool `help:"Only show the changes."`
	AllowLargeChange bool `help:"Activate even if a fee changes by over half, or by over five percent of the amount."`
}

func (*feesRefreshCmd) examples() []example {
	return []example{
		{"fees refresh --dry-run", "check the rules in PAYMENT_FEE_RULES and show the changes"},
		{"fees refresh", "activate the rules on all instances"},
		{"fees refresh --allow-large-change --json", "activate the rules even if fees change a lot, and print the changes as JSON"},
	}
}

func (c *feesRefreshCmd) Run(ctx context.Context, s *session) error {
	q := filter("dryRun", ifSet(c.DryRun), "allowLargeChange", ifSet(c.AllowLargeChange))
	return show(ctx, s, feesRequest(http.MethodPost, "/refresh", q), func(w io.Writer, done *view.FeeChange) {
		writeFeeChange(w, done)
		if c.DryRun && !c.AllowLargeChange && len(done.LargeChanges) > 0 {
			_, _ = fmt.Fprintln(w, "these changes need --allow-large-change")
		}
	})
}

// feesRollbackCmd activates an earlier version again.
type feesRollbackCmd struct {
	Version int64 `arg:"" help:"Version to activate again. It gets a new version number."`
	DryRun  bool  `help:"Only show the changes."`
}

func (*feesRollbackCmd) examples() []example {
	return []example{
		{"fees rollback 3 --dry-run", "show the changes if version 3 becomes active again"},
		{"fees rollback 3", "activate the rules of version 3 again on all instances"},
	}
}

func (c *feesRollbackCmd) Run(ctx context.Context, s *session) error {
	q := filter("version", strconv.FormatInt(c.Version, 10), "dryRun", ifSet(c.DryRun))
	return show(ctx, s, feesRequest(http.MethodPost, "/rollback", q), writeFeeChange)
}

func writeFeeChange(w io.Writer, c *view.FeeChange) {
	switch {
	case !c.Changed:
		_, _ = fmt.Fprintf(w, "version %d has the same rules; nothing changes\n", c.Version)
		return
	case c.DryRun:
		_, _ = fmt.Fprintf(w, "version %d would follow version %d\n", c.Version, c.PreviousVersion)
	default:
		_, _ = fmt.Fprintf(w, "version %d is active and replaces version %d\n", c.Version, c.PreviousVersion)
	}
	var rows [][]string
	for _, list := range []struct {
		name  string
		rules []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"modified", c.Modified}} {
		if len(list.rules) > 0 {
			rows = append(rows, []string{list.name, cell(strings.Join(list.rules, ", "))})
		}
	}
	table(w, rows)
	for _, large := range c.LargeChanges {
		_, _ = fmt.Fprintf(w, "large change: %s\n", printable(large))
	}
}

// feesShowCmd shows the fee rules.
type feesShowCmd struct {
	Version int64 `placeholder:"N" help:"Show this version. Default: the active one."`
}

func (*feesShowCmd) examples() []example {
	return []example{
		{"fees show", "show the active rules and earlier versions"},
		{"fees show --version 3 --json", "print the rules of version 3 as JSON"},
	}
}

func (c *feesShowCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, feesRequest(http.MethodGet, "", filter("version", unlessZero(c.Version))), writeFees)
}

func writeFees(w io.Writer, shown *view.FeeRules) {
	_, _ = fmt.Fprintf(w, "version %d, from %s, since %s\n\n", shown.Version, cell(shown.Source), moment(&shown.ActivatedAt))
	rows := [][]string{{"PRIORITY", "RULE", "CHARGES", "OF"}}
	for _, r := range shown.Rules.Rules {
		rows = append(rows, []string{strconv.FormatInt(r.Priority, 10), cell(r.ID), chargesText(r), cell(r.Conditions.String())})
	}
	f := shown.Rules.Fallback
	rows = append(rows, []string{"-", fee.FallbackID, fee.Percent(f.BasisPoints) + " % " + string(f.Basis), "all else"})
	table(w, rows)
	_, _ = fmt.Fprintln(w)
	rows = [][]string{{"VERSION", "SINCE", "BY", "FROM"}}
	for _, v := range shown.Versions {
		rows = append(rows, []string{strconv.FormatInt(v.Version, 10), moment(&v.ActivatedAt), cell(v.ActivatedBy), cell(v.Source)})
	}
	table(w, rows)
}

// chargesText describes the charges of a rule. Amounts are in minor units.
func chargesText(r fee.RuleDocument) string {
	text := strconv.Itoa(len(r.Tiers)) + " tiers"
	if r.BasisPoints != nil {
		text = fee.Percent(*r.BasisPoints) + " %"
		if r.Fixed > 0 {
			text += fmt.Sprintf(" + %d", r.Fixed)
		}
	}
	text += " " + string(r.Basis)
	if r.Minimum > 0 {
		text += fmt.Sprintf(", at least %d", r.Minimum)
	}
	if r.Maximum != nil {
		text += fmt.Sprintf(", at most %d", *r.Maximum)
	}
	return text
}

// feesQuoteCmd shows the fee of a payment.
type feesQuoteCmd struct {
	Kind     string `arg:"" help:"Kind of payment: sale, deposit or withdrawal."`
	Amount   int64  `arg:"" help:"Amount paid, in minor units such as cents."`
	Currency string `arg:"" help:"Currency of the amount, such as USD."`
	Method   string `help:"Payment method."`
	Country  string `help:"Country of the payment, such as DE."`
	Version  int64  `placeholder:"N" help:"Version of the rules. Default: the active one."`
}

func (*feesQuoteCmd) examples() []example {
	return []example{
		{"fees quote sale 1990 USD", "show the fee of a sale for 19.90 dollars and how it is computed"},
		{"fees quote deposit 5000 EUR --method card --country DE --json", "print the fee of a 50 euro deposit by card as JSON"},
	}
}

func (c *feesQuoteCmd) Run(ctx context.Context, s *session) error {
	r := feesRequest(http.MethodPost, "/quote", nil)
	r.body = struct {
		Kind     string `json:"kind"`
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
		Method   string `json:"paymentMethod,omitzero"`
		Country  string `json:"country,omitzero"`
		Version  int64  `json:"version,omitzero"`
	}{c.Kind, c.Amount, c.Currency, c.Method, c.Country, c.Version}
	return show(ctx, s, r, func(w io.Writer, q *view.FeeQuote) {
		_, _ = fmt.Fprintf(w, "computed with version %d:\n", q.Version)
		for _, miss := range q.NotMatched {
			_, _ = fmt.Fprintf(w, "  rule %s does not match: %s\n", printable(miss.Rule), printable(miss.Reason))
		}
		for _, step := range q.Steps {
			_, _ = fmt.Fprintf(w, "  %s\n", printable(step))
		}
	})
}
