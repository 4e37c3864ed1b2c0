package audit

import (
	"maps"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/wallet"
)

// check identifies a check. A report lists the checks in this order.
type check int

const (
	walletExists check = iota
	headPresent
	headMAC
	seqContiguous
	headLength
	chainLink
	entryHash
	headHash
	anchorMatch
	timestampMonotonic
	schemaValid
	schemaGuard
	currencySingle
	runningBalance
	runningHeld
	nonNegative
	cachedBalance
	cachedHeld
	txBalanced
	txComplete
	idempotencyUnique
	holdLifecycle
	reversalLink
	tradeCrosscheck
	feeCrosscheck
	roundingResidue
	checks // number of checks
)

// texts returns the API name of a check and the reason why it does not apply when it
// examined no rows.
func (c check) texts() (name, unused string) {
	texts := [checks][2]string{
		walletExists:       {"wallet_exists", "there is no account"},
		headPresent:        {"head_present", "there is no account"},
		headMAC:            {"head_mac", "there is no account"},
		seqContiguous:      {"seq_contiguous", "there are no entries"},
		headLength:         {"head_length", "there is no account"},
		chainLink:          {"chain_link", "there are no entries"},
		entryHash:          {"entry_hash", "there are no entries"},
		headHash:           {"head_hash", "there is no account"},
		anchorMatch:        {"anchor_match", "no checkpoint names an account yet"},
		timestampMonotonic: {"timestamp_monotonic", "there are no entries"},
		schemaValid:        {"schema_valid", "there are no rows"},
		schemaGuard:        {"schema_guard", "there is no schema"},
		currencySingle:     {"currency_single", "there is no account"},
		runningBalance:     {"running_balance", "there are no entries"},
		runningHeld:        {"running_held", "there are no entries"},
		nonNegative:        {"non_negative", "there are no entries"},
		cachedBalance:      {"cached_balance", "there is no account"},
		cachedHeld:         {"cached_held", "there is no account"},
		txBalanced:         {"tx_balanced", "there is no transaction"},
		txComplete:         {"tx_complete", "there is no transaction"},
		idempotencyUnique:  {"idempotency_unique", "no transaction has an idempotency key"},
		holdLifecycle:      {"hold_lifecycle", "no trade held money"},
		reversalLink:       {"reversal_link", "no transaction was reversed"},
		tradeCrosscheck:    {"trade_crosscheck", "no trade was paid"},
		feeCrosscheck:      {"fee_crosscheck", "no sale was charged by fee rules"},
		roundingResidue:    {"rounding_residue", "there is no sale"},
	}
	return texts[c][0], texts[c][1]
}

func (c check) name() string {
	name, _ := c.texts()
	return name
}

// Names returns the names of all checks in the order of the report.
func Names() []string {
	var out []string
	for c := range checks {
		out = append(out, c.name())
	}
	return out
}

// named returns the check with a name.
func named(name string) check { return check(slices.Index(Names(), name)) }

// Status is the result of a check or of a verification.
type Status string

// A check has one of the first four statuses. A report has one of the last three.
const (
	Pass          Status = "pass"
	Fail          Status = "fail"
	Skipped       Status = "skipped"       // the check could not run
	NotApplicable Status = "notApplicable" // there was nothing to examine
	OK            Status = "ok"            // every check passed or did not apply
	Failed        Status = "failed"
	Incomplete    Status = "incomplete" // no check failed, but at least one was skipped
)

// Checked is the result of one check.
type Checked struct {
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Reason   string `json:"reason,omitempty"` // why the check was skipped or does not apply, or a warning
	Examined int64  `json:"examined"`
	Failures int64  `json:"failures"`
	Warnings int64  `json:"warnings,omitempty"`
}

// Finding is one failure or warning. It never contains the expected value of a seal: an
// attacker who can write to the database could copy it.
type Finding struct {
	Check    string         `json:"check"`
	UserID   string         `json:"userId"`   // user of the account; empty: no account
	Currency money.Currency `json:"currency"` // currency of the account; empty: no account
	Seq      *int64         `json:"seq"`      // number of the entry; null: no entry
	Expected string         `json:"expected"`
	Actual   string         `json:"actual"`
	Message  string         `json:"message"`

	transaction int64 // id of the transaction; place looks up its entry
}

// Account is the result for one account. Amounts are in minor units.
type Account struct {
	Currency        money.Currency `json:"currency"`
	Entries         int64          `json:"entries"`
	LastSeq         int64          `json:"lastSeq"`
	ComputedBalance int64          `json:"computedBalance"` // sum of the entries
	CachedBalance   *int64         `json:"cachedBalance"`   // balance of the account's row; null: no row
	ComputedHeld    int64          `json:"computedHeld"`
	CachedHeld      *int64         `json:"cachedHeld"`
	HeadHash        string         `json:"headHash"` // hash of the last entry; empty: no entries
}

// Report is the result of the verification of a user.
type Report struct {
	UserID       string    `json:"userId"`
	OK           bool      `json:"ok"`
	Status       Status    `json:"status"`
	VerifiedAt   time.Time `json:"verifiedAt"`
	Accounts     []Account `json:"accounts"`
	Checks       []Checked `json:"checks"`
	Failures     []Finding `json:"failures"` // the first 100
	FailureCount int64     `json:"failureCount"`
	Warnings     []Finding `json:"warnings"`   // the first 100
	Checkpoint   *string   `json:"checkpoint"` // checkpoint of the verified accounts; null unless the status is ok
}

// FullReport is the result of the verification of the whole ledger.
type FullReport struct {
	OK           bool      `json:"ok"`
	Status       Status    `json:"status"`
	VerifiedAt   time.Time `json:"verifiedAt"`
	FinishedAt   time.Time `json:"finishedAt"`
	Accounts     int64     `json:"accounts"`
	Entries      int64     `json:"entries"`
	Transactions int64     `json:"transactions"`
	Checks       []Checked `json:"checks"`
	Failures     []Finding `json:"failures"` // the first 100
	FailureCount int64     `json:"failureCount"`
	Warnings     []Finding `json:"warnings"` // the first 100
	Problems     []Problem `json:"problems"` // the first 100 users
}

// Problem lists the failed checks of a user in a FullReport.
type Problem struct {
	UserID       string   `json:"userId"` // empty: the failures belong to no account
	Checks       []string `json:"checks"`
	FailureCount int64    `json:"failureCount"`
}

// maxReported is the maximum number of findings, and of users, in a report.
const maxReported = 100

// tally collects the findings of a verification.
type tally struct {
	examined, failures, warnings [checks]int64
	reasons                      [checks]string // reason of a skip, or why the check does not apply
	skipped                      [checks]bool
	found, warned                []Finding
	unplaced                     []unplacedFinding
	users                        map[string]*userFailures
}

// unplacedFinding is a finding about a transaction whose entries are not yet looked up.
type unplacedFinding struct {
	check
	Finding
}

// maxPlaced is the maximum number of findings for which place looks up an entry.
const maxPlaced = 1000

// userFailures holds the failures of a user.
type userFailures struct {
	checks [checks]bool
	count  int64
}

// maxShown is the maximum length of a text in a report, in bytes.
const maxShown = 512

// sanitize returns a database text as valid UTF-8 of limited length. The database may contain
// arbitrary bytes.
func sanitize(text string) string {
	cut, end := text, ""
	if len(text) > maxShown {
		cut, end = text[:maxShown], "..."
	}
	return strings.ToValidUTF8(cut, "\uFFFD") + end
}

// sanitize returns the finding with the name of its check and with limited texts.
func (f Finding) sanitize(c check) Finding {
	f.Check, f.UserID, f.Currency = c.name(), sanitize(f.UserID), money.Currency(sanitize(string(f.Currency)))
	f.Expected, f.Actual, f.Message = sanitize(f.Expected), sanitize(f.Actual), sanitize(f.Message)
	return f
}

func (t *tally) pass(c check) { t.examined[c]++ }

func (t *tally) fail(c check, f Finding) {
	t.examined[c]++
	t.failures[c]++
	if f.transaction != 0 && f.Seq == nil && len(t.unplaced) < maxPlaced {
		t.unplaced = append(t.unplaced, unplacedFinding{c, f})
		return
	}
	t.note(c, f)
}

// note adds a finding to the report and counts it for its user.
func (t *tally) note(c check, f Finding) {
	f = f.sanitize(c)
	if len(t.found) < maxReported {
		t.found = append(t.found, f)
	}
	if t.users == nil {
		t.users = map[string]*userFailures{}
	}
	u := t.users[f.UserID]
	if u == nil {
		if len(t.users) == maxReported {
			return
		}
		u = &userFailures{}
		t.users[f.UserID] = u
	}
	u.checks[c] = true
	u.count++
}

// require passes a check if good is true. Otherwise it fails the check with the finding of f.
func (t *tally) require(c check, good bool, f func() Finding) {
	if good {
		t.examined[c]++
		return
	}
	t.fail(c, f())
}

// skip records that a check could not examine all rows.
func (t *tally) skip(c check, reason string) {
	t.skipped[c] = true
	t.reasons[c] = reason
}

func (t *tally) warn(c check, f Finding) {
	t.examined[c]++
	t.warnings[c]++
	t.reasons[c] = "only a warning, because a clock may have been changed"
	if len(t.warned) < maxReported {
		t.warned = append(t.warned, f.sanitize(c))
	}
}

// checked returns the results of all checks, the status of the report and the number of
// failures.
func (t *tally) checked() (out []Checked, status Status, failures int64) {
	status = OK
	for c := range checks {
		name, unused := c.texts()
		r := Checked{Name: name, Reason: sanitize(t.reasons[c]), Examined: t.examined[c], Failures: t.failures[c], Warnings: t.warnings[c]}
		failures += r.Failures
		switch {
		case r.Failures > 0:
			r.Status, status = Fail, Failed
		case t.skipped[c]:
			r.Status = Skipped
			if status == OK {
				status = Incomplete
			}
		case r.Examined == 0:
			r.Status = NotApplicable
			if r.Reason == "" {
				r.Reason = unused
			}
		default:
			r.Status = Pass
		}
		out = append(out, r)
	}
	return out, status, failures
}

func (v *audit) report() *Report {
	r := &Report{UserID: sanitize(v.only), VerifiedAt: v.at, Accounts: orEmpty(v.accounts), Failures: orEmpty(v.found), Warnings: orEmpty(v.warned)}
	r.Checks, r.Status, r.FailureCount = v.checked()
	r.OK = r.Status == OK
	if !r.OK || len(wallet.ShardNames(v.only)) > 0 {
		return r // no checkpoint for a house user: each shard has a separate chain
	}
	text, err := (&wallet.UserCheckpoint{User: v.only, At: v.at, Marks: v.marks}).Encode(v.Keys)
	if err == nil {
		r.Checkpoint = &text
	} // otherwise the user has more accounts than posting allows
	return r
}

func (v *audit) fullReport(now time.Time) *FullReport {
	r := &FullReport{
		VerifiedAt: v.at, FinishedAt: now.UTC(), Accounts: v.heads, Entries: v.entries, Transactions: v.payments,
		Failures: orEmpty(v.found), Warnings: orEmpty(v.warned), Problems: []Problem{},
	}
	r.Checks, r.Status, r.FailureCount = v.checked()
	r.OK = r.Status == OK
	for _, user := range slices.Sorted(maps.Keys(v.users)) {
		p := Problem{UserID: user, FailureCount: v.users[user].count}
		for c, wrong := range v.users[user].checks {
			if wrong {
				p.Checks = append(p.Checks, check(c).name())
			}
		}
		r.Problems = append(r.Problems, p)
	}
	return r
}

// orEmpty returns an empty list for nil, so that JSON has [] instead of null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// clone returns a copy, so that the caller can discard later findings.
func (t *tally) clone() tally {
	c := *t
	c.users = make(map[string]*userFailures, len(t.users))
	for user, u := range t.users {
		own := *u
		c.users[user] = &own
	}
	return c
}
