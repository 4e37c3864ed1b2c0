package audit

import (
	"maps"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/wallet"
)

// check is one of the checks, in the order of the report.
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
	checks // how many there are
)

// texts returns the name of a check, which is API, and why it does not apply where
// it had nothing to examine.
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
		schemaValid:        {"schema_valid", "there is nothing"},
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
		holdLifecycle:      {"hold_lifecycle", "nothing was ever held"},
		reversalLink:       {"reversal_link", "nothing was taken back"},
		tradeCrosscheck:    {"trade_crosscheck", "no trade was paid"},
		feeCrosscheck:      {"fee_crosscheck", "nothing was sold by any fee rules"},
		roundingResidue:    {"rounding_residue", "nothing was sold"},
	}
	return texts[c][0], texts[c][1]
}

func (c check) name() string {
	name, _ := c.texts()
	return name
}

// Names returns the names of all checks, in their order.
func Names() []string {
	var out []string
	for c := range checks {
		out = append(out, c.name())
	}
	return out
}

// named returns the check of a name.
func named(name string) check { return check(slices.Index(Names(), name)) }

// Status is the result of a check, or of all of them.
type Status string

// The statuses: of a check the first four, of a report the last three.
const (
	Pass          Status = "pass"
	Fail          Status = "fail"
	Skipped       Status = "skipped"       // it could not run
	NotApplicable Status = "notApplicable" // there was nothing to examine
	OK            Status = "ok"            // every check passed or did not apply
	Failed        Status = "failed"
	Incomplete    Status = "incomplete" // none failed, and one was skipped
)

// Checked is how a check came out.
type Checked struct {
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Reason   string `json:"reason,omitempty"` // why it was skipped or does not apply, or a warning
	Examined int64  `json:"examined"`
	Failures int64  `json:"failures"`
	Warnings int64  `json:"warnings,omitempty"`
}

// Finding is one thing that is not as it should be. No seal is ever expected by
// its digits: an attacker who can write to the database could copy them.
type Finding struct {
	Check    string         `json:"check"`
	UserID   string         `json:"userId"`   // whose account it is in; empty: of none
	Currency money.Currency `json:"currency"` // the same
	Seq      *int64         `json:"seq"`      // number of the entry; null: it is about none
	Expected string         `json:"expected"`
	Actual   string         `json:"actual"`
	Message  string         `json:"message"`

	transaction int64 // that it is about; its entries say where it belongs
}

// Account is what was found of an account. Amounts are minor units.
type Account struct {
	Currency        money.Currency `json:"currency"`
	Entries         int64          `json:"entries"`
	LastSeq         int64          `json:"lastSeq"`
	ComputedBalance int64          `json:"computedBalance"` // the sum of the entries
	CachedBalance   *int64         `json:"cachedBalance"`   // as the account's row has it; null: there is none
	ComputedHeld    int64          `json:"computedHeld"`
	CachedHeld      *int64         `json:"cachedHeld"`
	HeadHash        string         `json:"headHash"` // of the last entry; empty: there are none
}

// Report is the verification of a user.
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
	Checkpoint   *string   `json:"checkpoint"` // over the accounts as they are; null unless the status is ok
}

// FullReport is the verification of everything.
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

// Problem is how a user fared in the verification of everything.
type Problem struct {
	UserID       string   `json:"userId"` // empty: what is wrong is in no account
	Checks       []string `json:"checks"`
	FailureCount int64    `json:"failureCount"`
}

// most is how many findings, and users, are reported.
const most = 100

// tally counts what was found.
type tally struct {
	examined, failures, warnings [checks]int64
	reasons                      [checks]string // of a skip, or why it does not apply
	skipped                      [checks]bool
	found, warned                []Finding
	unplaced                     []placeless
	users                        map[string]*trouble
}

// placeless is a finding about a transaction whose entries were not looked up yet.
type placeless struct {
	check
	Finding
}

// maxPlaced bounds for how many findings entries are looked up.
const maxPlaced = 1000

// trouble is what was found of a user.
type trouble struct {
	checks [checks]bool
	count  int64
}

// maxShown bounds, in bytes, each text of a report.
const maxShown = 512

// shown makes a text of the database, which may be anything, one that a report can
// hold: valid UTF-8, and not long.
func shown(text string) string {
	cut, end := text, ""
	if len(text) > maxShown {
		cut, end = text[:maxShown], "..."
	}
	return strings.ToValidUTF8(cut, "\uFFFD") + end
}

// shown makes a finding fit for a report.
func (f Finding) shown(c check) Finding {
	f.Check, f.UserID, f.Currency = c.name(), shown(f.UserID), money.Currency(shown(string(f.Currency)))
	f.Expected, f.Actual, f.Message = shown(f.Expected), shown(f.Actual), shown(f.Message)
	return f
}

func (t *tally) pass(c check) { t.examined[c]++ }

func (t *tally) fail(c check, f Finding) {
	t.examined[c]++
	t.failures[c]++
	if f.transaction != 0 && f.Seq == nil && len(t.unplaced) < maxPlaced {
		t.unplaced = append(t.unplaced, placeless{c, f})
		return
	}
	t.note(c, f)
}

// note lists a finding, and counts it for its user.
func (t *tally) note(c check, f Finding) {
	f = f.shown(c)
	if len(t.found) < most {
		t.found = append(t.found, f)
	}
	if t.users == nil {
		t.users = map[string]*trouble{}
	}
	u := t.users[f.UserID]
	if u == nil {
		if len(t.users) == most {
			return
		}
		u = &trouble{}
		t.users[f.UserID] = u
	}
	u.checks[c] = true
	u.count++
}

// that passes a check or fails it.
func (t *tally) that(c check, good bool, f func() Finding) {
	if good {
		t.examined[c]++
		return
	}
	t.fail(c, f())
}

// skip records that a check could not examine everything.
func (t *tally) skip(c check, reason string) {
	t.skipped[c] = true
	t.reasons[c] = reason
}

func (t *tally) warn(c check, f Finding) {
	t.examined[c]++
	t.warnings[c]++
	t.reasons[c] = "a warning only: clocks may be set"
	if len(t.warned) < most {
		t.warned = append(t.warned, f.shown(c))
	}
}

// checked returns the results of all checks.
func (t *tally) checked() (out []Checked, status Status, failures int64) {
	status = OK
	for c := range checks {
		name, unused := c.texts()
		r := Checked{Name: name, Reason: shown(t.reasons[c]), Examined: t.examined[c], Failures: t.failures[c], Warnings: t.warnings[c]}
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
	r := &Report{UserID: shown(v.only), VerifiedAt: v.at, Accounts: orNone(v.accounts), Failures: orNone(v.found), Warnings: orNone(v.warned)}
	r.Checks, r.Status, r.FailureCount = v.checked()
	r.OK = r.Status == OK
	if !r.OK || len(wallet.ShardNames(v.only)) > 0 {
		return r // a checkpoint vouches for what it is of; each shard has one of its own
	}
	text, err := (&wallet.UserCheckpoint{User: v.only, At: v.at, Marks: v.marks}).Encode(v.Keys)
	if err == nil {
		r.Checkpoint = &text
	} // else there are more accounts than posting ever makes
	return r
}

func (v *audit) fullReport(now time.Time) *FullReport {
	r := &FullReport{
		VerifiedAt: v.at, FinishedAt: now.UTC(), Accounts: v.heads, Entries: v.entries, Transactions: v.payments,
		Failures: orNone(v.found), Warnings: orNone(v.warned), Problems: []Problem{},
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

// orNone makes JSON show [] and not null.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// clone is for what may have to be taken back.
func (t *tally) clone() tally {
	c := *t
	c.users = make(map[string]*trouble, len(t.users))
	for user, u := range t.users {
		own := *u
		c.users[user] = &own
	}
	return c
}
