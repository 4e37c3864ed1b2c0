package audit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/user"
	"assay/internal/wallet"
)

// chain is the state of an account while its entries are read.
type chain struct {
	wallet.Account
	rows          int64
	number        int64 // number of the last entry
	hash          wallet.Hash
	intact        bool      // the last entry matches its seal; its hash counts only then
	sum, sumHeld  int64     // sums of the amounts
	balance, held int64     // values of the last entry
	began         time.Time // time of the first entry
	at            time.Time // time of the newest entry
}

// Limits for times. A transaction records its start time. Transactions that wait for each
// other may therefore commit in a different order, and the clocks of instances differ. A
// larger step back means that a row was backdated or a clock was set back.
const (
	concurrent = time.Minute
	// clockError is how far a clock may be ahead before a time is impossible.
	clockError = time.Hour
	// earliest is the start of 2020 in Unix seconds. No ledger is older.
	earliest = 1_577_836_800
)

// impossible reports whether a time is before 2020 or too far in the future.
func (v *audit) impossible(t time.Time) bool {
	return t.Unix() < earliest || t.After(v.at.Add(clockError))
}

// chains verifies accounts: their entries in order, and their rows.
type chains struct {
	*audit
	of string // verified account; empty: all
}

// verify verifies the accounts. Entries and rows are read in the order of accounts. n is
// the number of stored rows. A changed schema may allow rows with duplicate or NULL keys,
// which only the count reveals.
func (v *chains) verify(n Count) error {
	heads := readAhead(func(last *Head) ([]Head, error) {
		var after wallet.Account
		if last != nil {
			after = last.Account
		}
		return v.records.Heads(v.of, after, ahead)
	}, func(a, b *Head) int { return byAccount(a.Account, b.Account) })
	defer heads.stop()
	entries := readAhead(func(last *Entry) ([]Entry, error) {
		after := Place{Number: math.MinInt64}
		if last != nil {
			after = last.place()
		}
		return v.records.Entries(v.of, after, ahead)
	}, func(a, b *Entry) int { return byPlace(a.place(), b.place()) })
	entries.onPage = v.advance
	defer entries.stop()
	var last wallet.Account
	for {
		head, err := heads.peek()
		if err != nil {
			return err
		}
		first, err := entries.peek()
		if err != nil {
			return err
		}
		if head == nil && first == nil {
			v.counted(seqContiguous, v.entries, n.Entries, "Entries without a place in an account, or with a duplicate place, exist.")
			v.counted(headPresent, v.heads, n.Accounts, "Account rows without a valid account, or with a duplicate account, exist.")
			return nil
		}
		c := chain{intact: true}
		if first == nil || head != nil && byAccount(head.Account, first.Account) <= 0 {
			c.Account = head.Account
		} else {
			c.Account, head = first.Account, nil
		}
		if c.Account == last {
			v.fail(headPresent, c.finding("one account row", "several", "The account has more than one row."))
		}
		last = c.Account
		if err := v.follow(&c, entries); err != nil {
			return err
		}
		v.close(&c, head)
		if head != nil {
			heads.take()
		}
	}
}

// follow verifies the entries of an account.
func (v *chains) follow(c *chain, entries *cursor[Entry]) error {
	for {
		e, err := entries.peek()
		if err != nil {
			return err
		}
		if e == nil || e.Account != c.Account {
			return nil
		}
		v.link(c, e)
		entries.take()
	}
}

// link verifies an entry and its link to the previous entry.
func (v *chains) link(c *chain, e *Entry) {
	v.entries++
	c.rows++
	if c.rows == 1 {
		c.began = e.At
	}
	v.entrySchema(c, e)
	v.require(seqContiguous, e.Number == c.number+1, func() Finding {
		return entryFinding(e, integer(c.number+1), integer(e.Number), "Entries before this entry are missing, or two entries have the same number.")
	})
	v.require(chainLink, e.Previous == c.hash && c.intact, func() Finding {
		if e.Previous == c.hash {
			return entryFinding(e, "a previous entry that matches its seal", "an entry that does not", "The previous entry is not the one that this entry was linked to.")
		}
		return entryFinding(e, c.hash.String(), e.Previous.String(), "The entry is not linked to the previous entry.")
	})
	intact, err := v.sealer.EntryIntact(&e.Entry)
	c.intact = v.sealed(entryHash, intact, err, e.KeyID, func() Finding {
		return entryFinding(e, "the content that key "+quote(e.KeyID)+" sealed", e.Hash.String(), "The entry does not match its seal.")
	})
	c.at = v.monotonic(c.at, e.At, func(f Finding) Finding {
		return entryFinding(e, f.Expected, f.Actual, "The entry is earlier than the entries before it.")
	})
	v.figures(c, e)
	c.number, c.hash = e.Number, e.Hash
}

// monotonic warns if a time is earlier than the newest of the previous times. It returns
// the newest time for the next call. A clock that was set back causes only one warning.
func (v *audit) monotonic(newest, at time.Time, f func(Finding) Finding) time.Time {
	if at.Before(newest.Add(-concurrent)) {
		v.warn(timestampMonotonic, f(Finding{Expected: "not before " + stamp(newest), Actual: stamp(at)}))
		return at
	}
	v.pass(timestampMonotonic)
	if at.Before(newest) {
		return newest
	}
	return at
}

// figures verifies the balance and held amount of an entry.
func (v *chains) figures(c *chain, e *Entry) {
	moved := int64(0)
	if e.Type.Held() {
		moved = e.Amount
	}
	v.require(runningBalance, e.Balance == c.balance+e.Amount, func() Finding {
		return entryFinding(e, integer(c.balance+e.Amount), integer(e.Balance), "The balance after the entry is not the previous balance plus the amount.")
	})
	v.require(runningHeld, e.Held == c.held+moved, func() Finding {
		return entryFinding(e, integer(c.held+moved), integer(e.Held), "The held amount after the entry is not the previous held amount plus the entry's change.")
	})
	v.requireAllowed(e.User, e.Balance, e.Held, func(want, got, problem string) Finding { return entryFinding(e, want, got, problem) })
	c.sum += e.Amount
	c.sumHeld += moved
	c.balance, c.held = e.Balance, e.Held
}

// close verifies the row of an account after its entries. head is nil if there is no row.
func (v *chains) close(c *chain, head *Head) {
	v.require(currencySingle, c.Currency.Circulates(), func() Finding {
		return c.finding("a circulating currency", quote(string(c.Currency)), "The currency of the account is invalid.")
	})
	v.require(schemaValid, wallet.IsAccount(c.User), func() Finding {
		return c.finding("the id of a user or a house account", quote(c.User), "The user name of the account is invalid.")
	})
	out := Account{Currency: money.Currency(sanitize(string(c.Currency))), Entries: c.rows, LastSeq: c.number, ComputedBalance: c.sum, ComputedHeld: c.sumHeld}
	if c.rows > 0 {
		out.HeadHash = c.hash.String()
		v.mark(c)
	}
	v.require(headPresent, head != nil, func() Finding {
		return c.finding("an account row", "none", "The account has entries but no row.")
	})
	if head != nil {
		v.heads++
		out.CachedBalance, out.CachedHeld = &head.Balance, &head.Held
		v.head(c, head)
	}
	if v.only != "" {
		v.accounts = append(v.accounts, out)
	}
}

func (v *chains) mark(c *chain) {
	m := wallet.Mark{Account: c.Account, Number: c.number, Hash: c.hash}
	switch {
	case v.only != "":
		v.marks = append(v.marks, m)
	case v.add != nil:
		v.add(m)
	}
}

// head verifies the row of an account.
func (v *chains) head(c *chain, h *Head) {
	v.require(schemaValid, len(h.Faults) == 0 && h.Number >= 0, func() Finding {
		return c.finding("valid values", list(h.Faults), "Columns of the account's row have values that the ledger never writes.")
	})
	intact, err := v.sealer.HeadIntact(&h.Head)
	v.sealed(headMAC, intact, err, h.KeyID, func() Finding {
		return c.finding("the content that key "+quote(h.KeyID)+" sealed", h.MAC.String(), "The account's row does not match its seal.")
	})
	v.require(headLength, h.Number == c.number && h.Number == c.rows, func() Finding {
		return c.finding(integer(h.Number), integer(c.rows), "The number of entries in the account's row is wrong.")
	})
	v.require(headHash, h.Hash == c.hash && c.intact, func() Finding {
		if h.Hash == c.hash {
			return c.finding("a last entry that matches its seal", "an entry that does not", "The last entry is not the one that the account's row names.")
		}
		return c.finding(h.Hash.String(), c.hash.String(), "The account's row does not name the last entry.")
	})
	v.requireAllowed(h.User, h.Balance, h.Held, c.finding)
	v.require(cachedBalance, h.Balance == c.sum, func() Finding {
		return c.finding(integer(c.sum), integer(h.Balance), "The account's balance is not the sum of its entries.")
	})
	v.require(cachedHeld, h.Held == c.sumHeld, func() Finding {
		return c.finding(integer(c.sumHeld), integer(h.Held), "The held amount of the account is not the sum of its entries' held amounts.")
	})
}

func (c *chain) finding(expected, actual, message string) Finding {
	return Finding{UserID: c.User, Currency: c.Currency, Expected: expected, Actual: actual, Message: message}
}

// requireAllowed checks that an account may have a balance and a held amount.
func (v *chains) requireAllowed(user string, balance, held int64, finding func(expected, actual, message string) Finding) {
	v.require(nonNegative, wallet.Allowed(user, balance, held), func() Finding {
		return finding("no account overdrawn", fmt.Sprintf("%d, %d of it held", balance, held), "The balance or the held amount is not allowed for this account.")
	})
}

// entrySchema checks that the fields of an entry have valid values.
func (v *chains) entrySchema(c *chain, e *Entry) {
	wrong := e.Faults
	no := func(field string, bad bool) {
		if bad {
			wrong = append(wrong, field)
		}
	}
	no("number", e.Number < 1)
	no("transaction_id", e.Transaction < 1)
	no("type", !e.Type.Known())
	no("amount", e.Amount > wallet.MaxAmount || e.Amount < -wallet.MaxAmount)
	no("balance", e.Balance > wallet.MaxBalance || e.Balance < -wallet.MaxBalance)
	no("trade_id", e.Trade < 0)
	no("reverses", e.Reverses < 0 || e.Reverses >= e.Number && e.Reverses != 0)
	no("fee_version", e.FeeVersion < 0)
	no("at", v.impossible(e.At) || e.At.Before(c.began.Add(-clockError))) // or before the first entry of the account
	no("version", e.Version != wallet.Version)
	no("key_id", e.KeyID == "")
	no("idempotency_key", len(e.IdempotencyKey) > wallet.MaxKey)
	no("user_id", c.rows == 1 && user.CheckAny(e.User) != nil) // equal in all entries of the account; checked once
	v.require(schemaValid, len(wrong) == 0, func() Finding {
		return entryFinding(e, "valid values", list(wrong), "Columns of the entry have values that the ledger never writes.")
	})
}

// entryFinding returns a finding about an entry.
func entryFinding(e *Entry, expected, actual, message string) Finding {
	n := e.Number
	return Finding{UserID: e.User, Currency: e.Currency, Seq: &n, Expected: expected, Actual: actual, Message: message}
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// quote quotes a text of the database and limits its length.
func quote(text string) string { return fmt.Sprintf("%.130q", text) }

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
