package audit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// The states of a trade, as the market has them.
const (
	tradePending   = "pending"
	tradeCompleted = "completed"
	tradeReversed  = "reversed"
	tradeSettled   = "settled"
)

// deal is a trade with all transactions that belong to it.
type deal struct {
	id        int64
	trade     *Trade // nil: it is not there
	payments  []*payment
	sale      *payment // as the others: nil, if there is none
	completed *payment
	settled   *payment
	reversal  *payment
	oddities  []string // kinds that it has several of, or should have none of
}

// tradesOf examines the trades that transactions belong to, each with the first of
// its transactions that the user has part in.
func (v *audit) tradesOf(payments []payment) error {
	here := map[int64]*payment{}
	var ids []int64
	for i := range payments {
		p := &payments[i]
		here[p.id] = p
		ids = append(ids, p.trades()...)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil
	}
	deals, err := v.deals(ids, here)
	if err != nil {
		return err
	}
	for i := range payments {
		p := &payments[i]
		for _, id := range p.trades() {
			d := deals[id]
			if first := d.first(v.only); first == nil || first.id == p.id {
				if err := v.deal(d, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trades are those that a transaction or its entries name, in order.
func (p *payment) trades() []int64 {
	var out []int64
	if p.Transaction != nil && p.Trade != 0 {
		out = append(out, p.Trade)
	}
	for i := range p.entries {
		if id := p.entries[i].Trade; id != 0 {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// first returns the first transaction that a user has part in, or the first of all
// where there is no such.
func (d *deal) first(user string) *payment {
	for _, p := range d.payments {
		if p.part(user) {
			return p
		}
	}
	if len(d.payments) > 0 {
		return d.payments[0]
	}
	return nil
}

// deals reads trades with their transactions; here are some that were read.
func (v *audit) deals(ids []int64, here map[int64]*payment) (map[int64]*deal, error) {
	out := map[int64]*deal{}
	for _, id := range ids {
		out[id] = &deal{id: id}
	}
	trades, err := v.records.TradesOf(ids)
	if err != nil {
		return nil, err
	}
	for i := range trades {
		d := out[trades[i].ID]
		if d == nil {
			continue // the id is invalid, which is reported where all trades are read
		}
		d.found(&trades[i])
	}
	rows, err := v.records.TradeTransactions(ids)
	if err != nil {
		return nil, err
	}
	var missing []int64
	for i := range rows {
		if here[rows[i].ID] == nil {
			missing = append(missing, rows[i].ID)
		}
	}
	slices.Sort(missing)
	loaded, err := v.load(slices.Compact(missing))
	if err != nil {
		return nil, err
	}
	for i := range loaded {
		here[loaded[i].id] = &loaded[i]
	}
	for i := range rows {
		if d, p := out[rows[i].Trade], here[rows[i].ID]; d != nil && p != nil {
			d.payments = append(d.payments, p)
		} // otherwise the row has no such trade or id, which is reported where it is read
	}
	for _, d := range out {
		d.sort()
	}
	return out, nil
}

// found notes the row of a trade.
func (d *deal) found(t *Trade) {
	if d.trade != nil {
		t.Faults = append(t.Faults, "id, which another row has")
	}
	d.trade = t
}

// sort groups the transactions of a trade by kind.
func (d *deal) sort() {
	slices.SortFunc(d.payments, func(a, b *payment) int { return cmp.Compare(a.id, b.id) })
	d.payments = slices.Compact(d.payments)
	for _, p := range d.payments {
		place := map[wallet.Kind]**payment{
			wallet.KindSale: &d.sale, wallet.KindCompletion: &d.completed, wallet.KindSettlement: &d.settled, wallet.KindReversal: &d.reversal,
		}[p.kind()]
		if place == nil || *place != nil {
			d.oddities = append(d.oddities, string(p.kind()))
			continue
		}
		*place = p
	}
}

// deal examines a trade; p is the transaction that findings refer to.
func (v *audit) deal(d *deal, p *payment) error {
	if d.trade != nil {
		intact, err := v.sealer.Intact(&d.trade.Trade)
		v.sealed(tradeCrosscheck, intact, err, d.trade.KeyID, func() Finding {
			return v.finding(p, "what key "+quote(d.trade.KeyID)+" sealed", d.trade.MAC.String(), "trade %d is not what was sealed.", d.id)
		})
	}
	if wrong := d.differs(); len(wrong) > 0 {
		for _, w := range wrong {
			v.fail(tradeCrosscheck, v.finding(p, w.expected, w.actual, "trade %d: %s", d.id, w.message))
		}
	} else {
		v.pass(tradeCrosscheck)
	}
	v.terms(d)
	wrong := d.lifecycle()
	v.that(holdLifecycle, wrong == "", func() Finding {
		return v.finding(p, "what is held for a trade, released once", wrong, "trade %d: what is held for it does not go with what became of it.", d.id)
	})
	if d.sale == nil {
		return nil
	}
	v.rounding(d)
	return v.fee(d)
}

// terms examines whether a trade is the one that each of its transactions covers.
func (v *audit) terms(d *deal) {
	for _, p := range d.payments {
		if p.Transaction == nil || d.trade != nil && p.Terms == d.termsAt(p.kind()) {
			continue
		}
		f := v.finding(p, "trade "+integer(d.id)+" as it was", "another one, or none", "what it covers of trade %d was changed since it was posted.", d.id)
		v.fail(tradeCrosscheck, f)
		v.suspect(p, f)
	}
}

// termsAt is the digest of the trade as a transaction of a kind left it: what came
// later had not happened yet.
func (d *deal) termsAt(kind wallet.Kind) wallet.Hash {
	t := d.trade.Trade
	switch kind {
	case wallet.KindSale:
		t.CompletedAt, t.SettleAt, t.Volume, t.Ranked = time.Time{}, time.Time{}, 0, 0
		fallthrough
	case wallet.KindCompletion:
		t.SettledAt, t.ReversedAt = time.Time{}, time.Time{}
	}
	return t.Terms()
}

// difference is something in which the market and the ledger differ.
type difference struct{ expected, actual, message string }

// differs compares the market's row of a trade with the ledger.
func (d *deal) differs() (out []difference) {
	t := d.trade
	if t == nil {
		return []difference{{"a trade", "none", "money was moved for it, and it is not there."}}
	}
	differ := func(what, market, ledger string) {
		if market != ledger {
			out = append(out, difference{market, ledger, what})
		}
	}
	if len(t.Faults) > 0 {
		differ("its row holds what no column of its should.", "values that the market writes", list(t.Faults))
	}
	if d.sale == nil {
		differ("it was sold, and the ledger has no sale.", "transaction "+integer(t.Transaction), "none")
		return out
	}
	paid, got, feeEntry := d.sale.leg(wallet.TypePurchase), d.sale.leg(wallet.TypeSale), d.sale.leg(wallet.TypeFee)
	differ("its sale is another transaction.", integer(t.Transaction), integer(d.sale.id))
	if paid == nil {
		differ("its buyer has not paid.", "a purchase of "+integer(t.Price), "none")
	} else {
		differ("another one paid.", t.Buyer, paid.User)
		differ("another price was paid.", integer(t.Price), integer(-paid.Amount))
		differ("it was paid in another currency.", string(t.Currency), string(paid.Currency))
		differ("it was paid by another rule.", quote(t.FeeRule), quote(paid.FeeRule))
		differ("it was paid by rules of another version.", integer(t.FeeVersion), integer(paid.FeeVersion))
		if payment := d.payment(paid); d.sale.Transaction != nil {
			differ("it was paid by another method, or from another country.", quote(payment.Note()), quote(d.sale.Note))
		}
	}
	if got == nil {
		differ("its seller has no credit.", "a credit of "+integer(t.Net), "none")
	} else {
		differ("another one was credited.", t.Seller, got.User)
		differ("another amount was credited.", integer(t.Net), integer(got.Amount))
		differ("it was credited in another currency.", string(t.Currency), string(got.Currency))
	}
	if feeEntry == nil {
		differ("no fee was charged.", "a fee of "+integer(t.Fee), "none")
	} else {
		differ("another fee was charged.", integer(t.Fee), integer(feeEntry.Amount))
	}
	if d.completed != nil {
		differ("another one's trade was completed.", list(sorted(t.Buyer, t.Seller)), list(d.completed.users()))
	}
	differ("its price is not its fee and what the seller gets.", integer(t.Price), integer(t.Fee+t.Net))
	differ("its state does not go with what the ledger has of it.", t.State, d.state())
	differ("it was sold at another time.", stamp(t.CreatedAt), stamp(d.sale.At))
	differ("it was completed at another time.", moment(t.CompletedAt), d.completed.when())
	differ("it was settled at another time.", moment(t.SettledAt), d.settled.when())
	differ("it was reversed at another time.", moment(t.ReversedAt), d.reversal.when())
	if d.settled != nil && d.settled.At.Before(t.SettleAt) {
		differ("it was settled too early.", "not before "+stamp(t.SettleAt), stamp(d.settled.At))
	}
	return out
}

// users are those that have entries of the transaction, in order.
func (p *payment) users() []string {
	var out []string
	for i := range p.entries {
		out = append(out, p.entries[i].User)
	}
	return sorted(out...)
}

func sorted(names ...string) []string {
	slices.Sort(names)
	return names
}

// when formats the time of a transaction that may be nil.
func (p *payment) when() string {
	if p == nil {
		return "never"
	}
	return stamp(p.At)
}

// moment formats a time that may be zero.
func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return stamp(t)
}

// state is the one that goes with what the ledger has of a trade that was sold.
func (d *deal) state() string {
	switch {
	case d.settled != nil && d.reversal != nil:
		return "settled and reversed"
	case d.settled != nil:
		return tradeSettled
	case d.reversal != nil:
		return tradeReversed
	case d.completed != nil:
		return tradeCompleted
	default:
		return tradePending
	}
}

// lifecycle returns what is wrong with the hold of a trade; "": nothing.
func (d *deal) lifecycle() string {
	after := func(p, than *payment) bool { return p == nil || than != nil && p.id > than.id }
	switch {
	case len(d.oddities) > 0:
		return "too many of: " + list(d.oddities)
	case d.trade == nil && d.sale != nil:
		return "money held for a trade that is not there"
	case !after(d.completed, d.sale):
		return "a completion of what was not sold"
	case !after(d.settled, d.completed):
		return "a settlement of what was not completed"
	case d.reversal != nil && d.completed != nil && d.completed.id > d.reversal.id:
		return "a completion of what was reversed"
	case !after(d.settled, d.sale):
		return "a settlement of what was not sold"
	case !after(d.reversal, d.sale):
		return "a reversal of what was not sold"
	case d.settled != nil && d.reversal != nil:
		return "settled and reversed"
	case d.sale != nil && (d.settled == nil && d.trade.State == tradeSettled || d.reversal == nil && d.trade.State == tradeReversed):
		return "still held, and the trade is " + d.trade.State
	case d.settled != nil && !frees(d.settled, d.sale.leg(wallet.TypeSale)):
		return "settled as another amount, or to another account"
	}
	return ""
}

// frees reports whether a transaction frees what an entry holds.
func frees(p *payment, held *Entry) bool {
	freed := p.leg(wallet.TypeFree)
	return held != nil && freed != nil && freed.Account == held.Account && freed.Amount == held.Amount
}

// rounding examines whether a sale leaves nothing over.
func (v *audit) rounding(d *deal) {
	var rest int64
	for i := range d.sale.entries {
		switch e := &d.sale.entries[i]; e.Type {
		case wallet.TypePurchase, wallet.TypeSale, wallet.TypeFee:
			rest += e.Amount
		}
	}
	v.that(roundingResidue, rest == 0, func() Finding {
		return v.finding(d.sale, "0", integer(rest), "the buyer's payment is not the sum of the seller's credit and the fee.")
	})
}

// fee examines whether the fee of a sale matches the rules of its version.
func (v *audit) fee(d *deal) error {
	paid, feeEntry := d.sale.leg(wallet.TypePurchase), d.sale.leg(wallet.TypeFee)
	if paid == nil || feeEntry == nil {
		v.fail(feeCrosscheck, v.finding(d.sale, "a price and a fee", "not both", "it cannot be worked out what the sale costs."))
		return nil
	}
	v.rules.oldest = min(v.rules.oldest, paid.FeeVersion)
	rules, err := v.rule(paid.FeeVersion)
	if err != nil {
		return err
	}
	if rules.wrong != "" {
		v.fail(feeCrosscheck, of(feeEntry, "rules of version "+integer(paid.FeeVersion), rules.wrong, "The fee rules of the sale cannot be read."))
		return nil
	}
	payment := d.payment(paid)
	v.that(feeCrosscheck, rules.inForce(payment.At), func() Finding {
		return of(feeEntry, "a version in force at "+stamp(payment.At), fmt.Sprintf("version %d, from %s until %s", paid.FeeVersion, stamp(rules.from), moment(rules.until)),
			"The sale names a version of the rules that was not in force then.")
	})
	quoted, err := fee.Compute(rules.set, payment)
	if err != nil {
		v.fail(feeCrosscheck, of(feeEntry, "a price", integer(-paid.Amount), "No fee can be computed for the sale."))
		return nil //nolint:nilerr // that is what was found
	}
	recorded := feeEntry.Amount
	if d.trade != nil && d.trade.Fee != quoted.Fee {
		recorded = d.trade.Fee
	}
	v.that(feeCrosscheck, quoted.Fee == feeEntry.Amount && quoted.Rule == feeEntry.FeeRule && recorded == quoted.Fee, func() Finding {
		return of(feeEntry, fmt.Sprintf("%d by rule %s", quoted.Fee, quoted.Rule), fmt.Sprintf("%d by rule %s", recorded, quote(feeEntry.FeeRule)),
			fmt.Sprintf("The fee of trade %d does not match version %d of the rules.", d.id, paid.FeeVersion))
	})
	return nil
}

// payment returns the payment that the fee of a sale was computed for.
func (d *deal) payment(paid *Entry) fee.Payment {
	p := fee.Payment{Kind: fee.Sale, Amount: -paid.Amount, Currency: paid.Currency, At: paid.At}
	if d.sale.Transaction != nil {
		p.At = d.sale.At
	}
	if d.trade != nil {
		p.Method, p.Country = d.trade.PaymentMethod, d.trade.Country
	}
	return p
}

// trades examines those of the user that no transaction led to, and returns how
// many there are.
func (v *audit) trades() (n int64, err error) {
	for after := int64(-1 << 63); ; {
		rows, err := v.records.Trades(v.only, after, batch)
		if err != nil || len(rows) == 0 {
			return n, errors.Join(err, v.flush())
		}
		n += int64(len(rows))
		last := rows[len(rows)-1].ID
		if err := v.tradePage(rows); err != nil {
			return n, err
		}
		if last <= after {
			return n, v.flush() // it leads nowhere; those behind it are counted
		}
		after = last
	}
}

func (v *audit) tradePage(rows []Trade) error {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
		if err := v.holdFor(&rows[i]); err != nil {
			return err
		}
	}
	transactions, err := v.records.TradeTransactions(ids)
	if err != nil {
		return err
	}
	sold := map[int64]bool{}
	for i := range transactions {
		sold[transactions[i].Trade] = true
	}
	for i := range rows {
		if sold[rows[i].ID] {
			continue
		}
		d := &deal{id: rows[i].ID, trade: &rows[i]}
		if err := v.deal(d, &payment{id: rows[i].Transaction}); err != nil {
			return err
		}
	}
	return v.unpaid(ids)
}

// unpaid examines trades in whose transactions the user has no part.
func (v *audit) unpaid(ids []int64) error {
	deals, err := v.deals(ids, map[int64]*payment{})
	if err != nil {
		return err
	}
	for _, id := range ids {
		d := deals[id]
		if slices.ContainsFunc(d.payments, func(p *payment) bool { return p.part(v.only) }) {
			continue
		}
		for _, p := range d.payments {
			if err := v.enqueue(p.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlisted examines whether trades and listings that were sold go together, and
// whether a user's id leads to one user.
func (v *audit) unlisted() error {
	unlisted := paged(math.MinInt64, func(after int64) ([]Unlisted, error) { return v.records.Unlisted(v.only, after, page) }, func(u Unlisted) int64 {
		v.fail(tradeCrosscheck, Finding{
			UserID: v.only, Expected: fmt.Sprintf("listing %d, sold by trade %d", u.Listing, u.Trade), Actual: "none, or another one",
			Message: fmt.Sprintf("Trade %d does not go with its listing.", u.Trade),
		})
		return u.Trade
	})
	untraded := paged(math.MinInt64, func(after int64) ([]int64, error) { return v.records.Untraded(v.only, after, page) }, func(id int64) int64 {
		v.fail(tradeCrosscheck, Finding{UserID: v.only, Expected: "a trade", Actual: "none", Message: fmt.Sprintf("Listing %d is sold, and no trade is of it.", id)})
		return id
	})
	twins := paged("", func(after string) ([]string, error) { return v.records.Twins(v.only, after, page) }, func(id string) string {
		v.fail(schemaValid, Finding{UserID: v.only, Expected: "one user of the id " + quote(id), Actual: "several", Message: "Another user with that id exists, so it is unknown which trades belong to which user."})
		return id
	})
	return errors.Join(unlisted, untraded, twins)
}

// paged reads a list in pages. each is given its rows, and returns by what the next
// page is found.
func paged[K cmp.Ordered, T any](after K, read func(after K) ([]T, error), each func(T) K) error {
	for {
		rows, err := read(after)
		if err != nil || len(rows) == 0 {
			return err
		}
		before := after
		for _, r := range rows {
			after = each(r)
		}
		if after <= before {
			return nil // it leads nowhere: keys of other types are reported where their rows are read
		}
	}
}
