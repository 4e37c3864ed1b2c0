package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/view"
	"assay/internal/wallet/fee"
)

// versionsShown is the number of versions on a page.
const versionsShown = 20

// feeTime is the layout of times in rules.
const feeTime = "2006-01-02 15:04 UTC"

// feesPage shows the fee rules in force beside those of the source.
type feesPage struct {
	frame
	Active   view.FeeVersion
	Source   string // name of the source
	Error    string // why the source cannot be read; empty: it was read
	Unread   bool   // the source is remote, and this page did not read it
	Missing  string // why there are no rules of the source: "not read" or "not usable"; empty: there are
	Rows     []feeRow
	Changes  int
	Digest   string // of the rules of the source
	Large    largeFees
	Examples []feeExample
	Quote    feeQuote
	Versions []view.FeeVersion
	Next     string // page of older versions; empty: none
	API      apiCall
}

// feeRow is a rule in force beside the same rule of the source. A missing rule is empty.
type feeRow struct {
	ID, State     string
	Was, Becoming []string
}

// Differs reports whether a line is part of the change of a modified rule.
func (r feeRow) Differs(line string) bool {
	return r.State == "modified" && !(slices.Contains(r.Was, line) && slices.Contains(r.Becoming, line))
}

// feeExample is the fee of a payment, by the rules in force and by those of the source.
type feeExample struct {
	fee.Payment
	Rule     string
	Fee, Net int64
	Next     int64 // fee by the rules of the source
	Differs  bool
}

// feeQuote is the form of a payment with its fee.
type feeQuote struct {
	Kind, Amount, Currency, Method, Country string
	Kinds                                   []fee.Kind
	Error                                   string
	Result                                  *fee.Explanation // nil: no payment was entered
	Code                                    money.Currency
}

func (s *moneyPages) fees(w http.ResponseWriter, r *http.Request, sess session) error {
	q := r.URL.Query()
	active, err := s.Fees.Version(r.Context(), 0)
	if err != nil {
		return err
	}
	page := feesPage{
		frame: s.frame("Fees", "fees", &sess), Active: view.FeeVersionOf(&active), Source: s.Fees.SourceName(),
		API: apiCall{Method: http.MethodPost, Path: "/api/functions/admin/payment-fee-rules/refresh?dryRun=1"},
	}
	next := active
	_, remote := s.Fees.Source.(*fee.Address)
	if page.Unread = remote && !q.Has("compare"); page.Unread {
		page.Missing = "not read"
	} else {
		_, found, err := s.Fees.Candidate(r.Context(), sess.author())
		switch refused := fault.Of(err); {
		case refused != nil:
			page.Error, page.Missing = faultText(refused), "not usable"
		case err != nil:
			return err
		default:
			next = found
		}
	}
	page.Rows, page.Changes = compareFees(active.Set, next.Set)
	page.Digest = next.Digest
	page.Large = s.largeFees(fee.LargeChanges(active.Set, next.Set, s.Now()))
	page.Examples = s.feeExamples(active.Set, next.Set)
	page.Quote = s.quoteOf(r, active.Set)
	if page.Versions, page.Next, err = s.feeVersions(r.Context(), q.Get("before")); err != nil {
		return err
	}
	return s.show(w, r, "fees", page)
}

// feeVersions returns a page of versions, newest first, and the URL of the next page.
func (s *moneyPages) feeVersions(ctx context.Context, before string) (out []view.FeeVersion, next string, err error) {
	var last int64
	if before != "" {
		if last, err = strconv.ParseInt(before, 10, 64); err != nil || last < 1 {
			return nil, "", fault.New(fault.Invalid, "invalid_cursor", "The cursor is not valid for this list. Start again without a cursor.")
		}
	}
	found, err := fee.ListActivations(ctx, s.Fees.Store, last, versionsShown+1)
	for i := range found[:min(versionsShown, len(found))] {
		out = append(out, view.FeeVersionOf(&found[i]))
	}
	if len(found) > versionsShown {
		next = "/fees?before=" + text(found[versionsShown-1].Version) + "#versions"
	}
	return out, next, err
}

// compareFees returns the rules of two sets side by side and the number of changes. Removed rules
// come first, then the rules of next in evaluation order.
func compareFees(was, next *fee.Set) (rows []feeRow, changes int) {
	diff := fee.Compare(was, next)
	state := func(id string) string {
		switch {
		case slices.Contains(diff.Added, id):
			return "added"
		case slices.Contains(diff.Removed, id):
			return "removed"
		case slices.Contains(diff.Modified, id):
			return "modified"
		}
		return "unchanged"
	}
	old := map[string]fee.RuleDocument{}
	for _, rule := range was.Document().Rules {
		old[rule.ID] = rule
		if state(rule.ID) == "removed" {
			rows = append(rows, feeRow{rule.ID, "removed", ruleText(rule), nil})
		}
	}
	for _, rule := range next.Document().Rules {
		row := feeRow{ID: rule.ID, State: state(rule.ID), Becoming: ruleText(rule)}
		if before, known := old[rule.ID]; known {
			row.Was = ruleText(before)
		}
		rows = append(rows, row)
	}
	rows = append(rows, feeRow{fee.FallbackID, state(fee.FallbackID), fallbackText(was.Document().Fallback), fallbackText(next.Document().Fallback)})
	return rows, len(diff.Added) + len(diff.Removed) + len(diff.Modified)
}

// ruleText describes a rule with one property per line.
func ruleText(r fee.RuleDocument) []string {
	amount := func(n int64) string {
		if c := r.Conditions; c != nil && len(c.Currency) == 1 {
			return minor(n, c.Currency[0]).Short
		}
		return formatCount(n) + " minor units"
	}
	rate := func(points, fixed int64) string {
		if fixed > 0 {
			return fee.Percent(points) + " % + " + amount(fixed)
		}
		return fee.Percent(points) + " %"
	}
	lines := []string{"For: " + r.Conditions.String()}
	if r.BasisPoints != nil {
		lines = append(lines, "Fee: "+rate(*r.BasisPoints, r.Fixed)+" of "+string(r.Basis))
	}
	for _, t := range r.Tiers {
		below := "unlimited"
		if t.Below > 0 {
			below = "below " + amount(t.Below)
		}
		lines = append(lines, "From "+amount(t.From)+", "+below+": "+rate(t.BasisPoints, t.Fixed)+" of "+string(r.Basis))
	}
	if r.Minimum > 0 {
		lines = append(lines, "At least: "+amount(r.Minimum))
	}
	if r.Maximum != nil {
		lines = append(lines, "At most: "+amount(*r.Maximum))
	}
	lines = append(lines, "Priority: "+text(r.Priority)+", rounding: "+string(r.Rounding))
	if r.EffectiveFrom != nil {
		lines = append(lines, "From: "+r.EffectiveFrom.UTC().Format(feeTime))
	}
	if r.EffectiveUntil != nil {
		lines = append(lines, "Until: "+r.EffectiveUntil.UTC().Format(feeTime))
	}
	return lines
}

func fallbackText(f fee.FallbackDocument) []string {
	return []string{"For: payments that no rule matches", "Fee: " + fee.Percent(f.BasisPoints) + " % of " + string(f.Basis), "Rounding: " + string(f.Rounding)}
}

// feeExamples returns the fees of example payments in the base currency.
func (s *moneyPages) feeExamples(was, next *fee.Set) (out []feeExample) {
	unit := int64(1)
	for range s.Currency.MinorDigits() {
		unit *= 10
	}
	for _, kind := range fee.Kinds() {
		for _, amount := range []int64{1, 10, 100, 1000} {
			p := fee.Payment{Kind: kind, Amount: amount * unit, Currency: s.Currency, At: s.Now()}
			now, err := fee.Compute(was, p)
			later, failed := fee.Compute(next, p)
			if cmp.Or(err, failed) == nil {
				out = append(out, feeExample{p, now.Rule, now.Fee, now.Net, later.Fee, later.Fee != now.Fee})
			}
		}
	}
	return out
}

// quoteOf reads the form of a payment and returns its fee by the rules in force.
func (s *moneyPages) quoteOf(r *http.Request, set *fee.Set) feeQuote {
	q := r.URL.Query()
	f := feeQuote{
		Kind: q.Get("kind"), Amount: q.Get("amount"), Currency: cmp.Or(q.Get("currency"), string(s.Currency)), Method: q.Get("method"), Country: q.Get("country"),
		Kinds: fee.Kinds(), Code: money.Currency(q.Get("currency")),
	}
	if f.Amount == "" {
		return f
	}
	amount, ok := minorUnits(f.Amount, f.Code)
	if !ok {
		f.Error = "The amount must be a decimal number above 0 with the decimal places of the currency, such as 12.50 USD."
		return f
	}
	result, err := fee.Explain(set, fee.Payment{Kind: fee.Kind(f.Kind), Amount: amount, Currency: f.Code, Method: f.Method, Country: f.Country, At: s.Now()})
	if refused := fault.Of(err); refused != nil {
		f.Error = faultText(refused)
	} else if err == nil {
		f.Result = &result
	}
	return f
}

// minorUnits returns an amount such as "12.50" in minor units of its currency.
func minorUnits(field string, c money.Currency) (int64, bool) {
	m, err := money.Parse([]byte(field), 1)
	if err != nil || len(field) > 32 || m <= 0 || !c.Circulates() {
		return 0, false
	}
	unit := c.FromMinor(1)
	return int64(m / unit), m%unit == 0
}

// activateFees activates the rules of the source. The form contains the digest of the rules that
// the user saw.
func (s *moneyPages) activateFees(w http.ResponseWriter, r *http.Request, sess session) error {
	active, next, err := s.Fees.Candidate(r.Context(), sess.author())
	if err == nil && next.Digest != r.PostFormValue("digest") {
		err = fault.New(fault.Conflict, "fee_rules_moved", "The rules of the source have changed since this page was loaded. Check the changes again, then activate them.")
	}
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	_, n := compareFees(active.Set, next.Set)
	large := fee.LargeChanges(active.Set, next.Set, s.Now())
	question := confirmation{Question: "Activate " + rulesChanged(n) + "?", Text: "New payments use them immediately. Existing trades keep their fee.", Button: "Activate " + rulesChanged(n)}
	question.Fees, question.Danger = s.largeFees(large), len(large) > 0
	if ok, err := s.confirmed(w, r, sess, question); !ok {
		return err
	}
	done, err := s.Fees.Refresh(r.Context(), fee.Request{AllowLarge: len(large) > 0, By: sess.author()})
	message := "Version " + text(done.Version) + " of the fee rules is in force."
	if err == nil && !done.Changed {
		message = "The rules of the source are already in force."
	}
	return s.done(w, r, sess, flash{Good: true, Text: message}, err)
}

// largeFees are the large changes of the fees of example payments.
type largeFees []largeFee

type largeFee struct {
	Text string
	At   *time.Time // time from which the fee changes; nil: now
}

func (s *moneyPages) largeFees(changes []fee.LargeChange) (out largeFees) {
	for _, c := range changes {
		large := largeFee{Text: c.Text()}
		if c.Payment.At.After(s.Now()) {
			large.At = &c.Payment.At
		}
		out = append(out, large)
	}
	return out
}

// largeFeesShown is the number of large changes in a list.
const largeFeesShown = 10

// Shown returns the listed changes.
func (l largeFees) Shown() []largeFee { return l[:min(largeFeesShown, len(l))] }

// Title describes the list.
func (l largeFees) Title() string {
	title := numbered(len(l), "example payment changes", "example payments change") + " by more than half or five percentage points"
	if len(l) > largeFeesShown {
		return title + ". The first " + text(largeFeesShown) + ":"
	}
	return title + ":"
}

// rulesChanged returns a number of changes as text.
func rulesChanged(n int) string {
	if n == 1 {
		return "1 change"
	}
	return formatCount(n) + " changes"
}

// rollbackFees activates the rules of an earlier version again.
func (s *moneyPages) rollbackFees(w http.ResponseWriter, r *http.Request, sess session) error {
	version, err := strconv.ParseInt(strings.TrimSpace(r.URL.Query().Get("version")), 10, 64)
	if err != nil || version < 1 {
		return s.done(w, r, sess, flash{}, fault.New(fault.Invalid, "invalid_parameters", "Choose one of the versions."))
	}
	request := fee.Request{DryRun: true, By: sess.author()}
	plan, err := s.Fees.Rollback(r.Context(), version, request)
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	n := len(plan.Added) + len(plan.Removed) + len(plan.Modified)
	if ok, err := s.confirmed(w, r, sess, confirmation{
		Question: "Roll back to version " + text(version) + " with " + rulesChanged(n) + "?", Text: "Its rules are activated as the next version. New payments use them immediately.",
		Button: "Roll back to version " + text(version), Danger: true,
		Fees: s.largeFees(plan.Large),
	}); !ok {
		return err
	}
	request.DryRun = false
	done, err := s.Fees.Rollback(r.Context(), version, request)
	message := "Version " + text(done.Version) + " with the rules of version " + text(version) + " is in force."
	if err == nil && !done.Changed {
		message = "The rules of version " + text(version) + " are already in force."
	}
	return s.done(w, r, sess, flash{Good: true, Text: message}, err)
}
