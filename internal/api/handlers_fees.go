package api

import (
	"io"
	"math"
	"time"

	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/strictjson"
	"assay/internal/view"
	"assay/internal/wallet/fee"
)

// feeHandlers serve fee rules and fee quotes.
type feeHandlers struct{ *Deps }

func (h feeHandlers) refreshFees(c *call) (any, error) {
	r := fee.Request{DryRun: c.values.flag("dryRun"), AllowLarge: c.values.flag("allowLargeChange"), By: c.role}
	result, err := h.Fees.Refresh(c.Context(), r)
	return feeChangeOf(result, r), err
}

func (h feeHandlers) rollbackFees(c *call) (any, error) {
	version := c.values.number("version")
	if version == 0 {
		f := fault.New(fault.Invalid, "invalid_parameters", invalidParams)
		f.Fields = []fault.Field{{Pointer: "/query/version", Code: strictjson.Required, Detail: "is required"}}
		return nil, f
	}
	r := fee.Request{DryRun: c.values.flag("dryRun"), By: c.role}
	result, err := h.Fees.Rollback(c.Context(), version, r)
	return feeChangeOf(result, r), err
}

func feeChangeOf(result fee.Result, r fee.Request) view.FeeChange {
	change := view.FeeChange{
		Version: result.Version, PreviousVersion: result.Previous, Changed: result.Changed, DryRun: r.DryRun,
		Added: result.Added, Removed: result.Removed, Modified: result.Modified,
	}
	for _, large := range result.Large {
		change.LargeChanges = append(change.LargeChanges, large.String())
	}
	return change
}

// listedFees is the maximum number of versions in a response.
const listedFees = 100

func (h feeHandlers) feeRules(c *call) (any, error) {
	active, err := h.Fees.Version(c.Context(), c.values.number("version"))
	if err != nil {
		return nil, err
	}
	all, err := fee.ListActivations(c.Context(), h.Fees.Store, c.values.number("before"), listedFees)
	if err != nil {
		return nil, err
	}
	out := view.FeeRules{FeeVersion: view.FeeVersionOf(&active), Rules: active.Set.Document()}
	for i := range all {
		out.Versions = append(out.Versions, view.FeeVersionOf(&all[i]))
	}
	return out, nil
}

// quoteBody describes the body of a fee quote. decodePayment decodes it.
type quoteBody struct {
	Kind          fee.Kind       `json:"kind"`
	Amount        int64          `json:"amount"`
	Currency      money.Currency `json:"currency"`
	PaymentMethod string         `json:"paymentMethod,omitempty"`
	Country       string         `json:"country,omitempty"`
	Time          string         `json:"time,omitempty" format:"date-time"`
	Version       int64          `json:"version,omitempty"`
}

func (h feeHandlers) quoteFee(c *call) (any, error) {
	payment, version, err := decodePayment(c.Body, h.Now())
	if err != nil {
		return nil, err
	}
	e, err := h.Fees.Quote(c.Context(), version, payment)
	if err != nil {
		return nil, err
	}
	quote := view.FeeQuote{
		Version: e.Version, Rule: e.Rule, Amount: payment.Amount, Fee: e.Fee, Net: e.Net,
		Currency: string(payment.Currency), Steps: e.Steps, MoreNotMatched: e.MoreMisses,
	}
	for _, m := range e.NotMatched {
		quote.NotMatched = append(quote.NotMatched, view.FeeMismatch(m))
	}
	return quote, nil
}

// decodePayment decodes a payment and the requested version of the rules. The default time
// of the payment is now. The default version is 0, the active one.
func decodePayment(body io.Reader, now time.Time) (p fee.Payment, version int64, err error) {
	in := strictjson.NewReader(body)
	p.At = now
	given := map[string]bool{}
	members := []string{"kind", "amount", "currency", "paymentMethod", "country", "time", "version"}
	in.Object(members, func(member string) bool {
		given[member] = true
		switch member {
		case "kind":
			kind, _ := in.Text(1, fee.MaxID)
			p.Kind = fee.Kind(kind)
		case "amount":
			p.Amount, _ = in.Int(0, math.MaxInt64)
		case "currency":
			currency, _ := in.Text(1, fee.MaxID)
			p.Currency = money.Currency(currency)
		case "paymentMethod":
			p.Method = optional(in, fee.MaxID)
		case "country":
			p.Country = optional(in, fee.MaxID)
		case "time":
			if at, ok := in.Time(); ok {
				p.At = at
			}
		case "version":
			version, _ = in.Int(1, math.MaxInt64)
		default:
			return false
		}
		return true
	})
	for _, member := range members[:3] {
		in.Require("", member, given[member])
	}
	return p, version, in.Finish()
}
