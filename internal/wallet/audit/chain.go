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

// chain is an account while its entries go by.
type chain struct {
	wallet.Account
	rows          int64
	number        int64 // of the last entry
	hash          wallet.Hash
	intact        bool      // the last entry is what was sealed; a stored hash counts only then
	sum, sumHeld  int64     // of the amounts
	balance, held int64     // of the last entry
	began         time.Time // of the first entry
	at            time.Time // of the newest entry
}

// Bounds of times. A transaction has the moment at which it began, so that those that
// wait for each other come in another order than their moments, by as long as a
// transaction lasts, and by as much as clocks of instances differ. What is earlier than
// that was dated back, or a clock was set back.
const (
	concurrent = time.Minute
	// clockError is how wrong a clock may be before a time is impossible.
	clockError = time.Hour
	// earliest is before any ledger, in seconds since 1970: the beginning of 2020.
	earliest = 1_577_836_800
)

// impossible reports whether nothing of the ledger can be of a moment.
func (v *audit) impossible(t time.Time) bool {
	return t.Unix() < earliest || t.After(v.at.Add(clockError))
}

// chains verifies accounts: their entries one after the other, and their rows against
// them.
type chains struct {
	*audit
	of string // whose accounts; empty: all
}

// verify examines the accounts. Entries and rows come in the order of accounts. n is how
// many there are of each so far: the database may have been made to take a key twice, or none.
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
			v.counted(seqContiguous, v.entries, n.Entries, "There are entries that have no place in any account, or one that is taken.")
			v.counted(headPresent, v.heads, n.Accounts, "There are account rows that are of no account, or of one that has a row.")
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

// follow examines the entries of an account.
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

// link examines an entry as the next one of its chain.
func (v *chains) link(c *chain, e *Entry) {
	v.entries++
	c.rows++
	if c.rows == 1 {
		c.began = e.At
	}
	v.entrySchema(c, e)
	v.that(seqContiguous, e.Number == c.number+1, func() Finding {
		return of(e, integer(c.number+1), integer(e.Number), "Entries are missing before this one, or it has another one's number.")
	})
	v.that(chainLink, e.Previous == c.hash && c.intact, func() Finding {
		if e.Previous == c.hash {
			return of(e, "an entry that is what was sealed", "one that is not", "The entry before this one is not the one that this one was chained to.")
		}
		return of(e, c.hash.String(), e.Previous.String(), "The entry was not chained to the one before it.")
	})
	intact, err := v.sealer.EntryIntact(&e.Entry)
	c.intact = v.sealed(entryHash, intact, err, e.KeyID, func() Finding {
		return of(e, "what key "+quote(e.KeyID)+" sealed", e.Hash.String(), "The entry is not what was sealed.")
	})
	c.at = v.monotonic(c.at, e.At, func(f Finding) Finding {
		return of(e, f.Expected, f.Actual, "The entry is of an earlier moment than those before it.")
	})
	v.figures(c, e)
	c.number, c.hash = e.Number, e.Hash
}

// monotonic warns of a moment that is earlier than the newest one before it, and returns
// the newest from there on: of a clock that was set back there is one warning.
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

// figures examines what an entry leaves.
func (v *chains) figures(c *chain, e *Entry) {
	moved := int64(0)
	if e.Type.Held() {
		moved = e.Amount
	}
	v.that(runningBalance, e.Balance == c.balance+e.Amount, func() Finding {
		return of(e, integer(c.balance+e.Amount), integer(e.Balance), "The balance after the entry is not the one before it and the amount.")
	})
	v.that(runningHeld, e.Held == c.held+moved, func() Finding {
		return of(e, integer(c.held+moved), integer(e.Held), "What is held after the entry is not what was held before it and what it holds.")
	})
	v.that(nonNegative, wallet.Allowed(e.User, e.Balance, e.Held), func() Finding {
		return of(e, "no account overdrawn", fmt.Sprintf("%d, %d of it held", e.Balance, e.Held), "The account may not stand so.")
	})
	c.sum += e.Amount
	c.sumHeld += moved
	c.balance, c.held = e.Balance, e.Held
}

// close examines the row of an account after its entries; nil: there is none.
func (v *chains) close(c *chain, head *Head) {
	v.that(currencySingle, c.Currency.Circulates(), func() Finding {
		return c.finding("a currency that circulates", quote(string(c.Currency)), "The account is of no currency.")
	})
	v.that(schemaValid, wallet.IsAccount(c.User), func() Finding {
		return c.finding("an id of a user, or an account of the house", quote(c.User), "The ledger makes no account of this name.")
	})
	out := Account{Currency: money.Currency(shown(string(c.Currency))), Entries: c.rows, LastSeq: c.number, ComputedBalance: c.sum, ComputedHeld: c.sumHeld}
	if c.rows > 0 {
		out.HeadHash = c.hash.String()
		v.mark(c)
	}
	v.that(headPresent, head != nil, func() Finding {
		return c.finding("an account row", "none", "There are entries of an account that has no row.")
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

// head examines the row of an account.
func (v *chains) head(c *chain, h *Head) {
	v.that(schemaValid, len(h.Faults) == 0 && h.Number >= 0, func() Finding {
		return c.finding("columns of the right type", list(h.Faults), "The account's row holds what no column of its should.")
	})
	intact, err := v.sealer.HeadIntact(&h.Head)
	v.sealed(headMAC, intact, err, h.KeyID, func() Finding {
		return c.finding("what key "+quote(h.KeyID)+" sealed", h.MAC.String(), "The account's row is not what was sealed.")
	})
	v.that(headLength, h.Number == c.number && h.Number == c.rows, func() Finding {
		return c.finding(integer(h.Number), integer(c.rows), "The account's row counts other entries than there are.")
	})
	v.that(headHash, h.Hash == c.hash && c.intact, func() Finding {
		if h.Hash == c.hash {
			return c.finding("an entry that is what was sealed", "one that is not", "The last entry is not the one that the account's row names.")
		}
		return c.finding(h.Hash.String(), c.hash.String(), "The account's row names another last entry than there is.")
	})
	v.that(nonNegative, wallet.Allowed(h.User, h.Balance, h.Held), func() Finding {
		return c.finding("no account overdrawn", fmt.Sprintf("%d, %d of it held", h.Balance, h.Held), "The account may not stand so.")
	})
	v.that(cachedBalance, h.Balance == c.sum, func() Finding {
		return c.finding(integer(c.sum), integer(h.Balance), "The account's balance is not the sum of its entries.")
	})
	v.that(cachedHeld, h.Held == c.sumHeld, func() Finding {
		return c.finding(integer(c.sumHeld), integer(h.Held), "What the account holds is not what its entries hold.")
	})
}

func (c *chain) finding(expected, actual, message string) Finding {
	return Finding{UserID: c.User, Currency: c.Currency, Expected: expected, Actual: actual, Message: message}
}

// entrySchema examines whether the fields of an entry can be.
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
	no("at", v.impossible(e.At) || e.At.Before(c.began.Add(-clockError))) // or before the account
	no("version", e.Version != wallet.Version)
	no("key_id", e.KeyID == "")
	no("idempotency_key", len(e.IdempotencyKey) > wallet.MaxKey)
	no("user_id", c.rows == 1 && user.CheckAny(e.User) != nil) // the same in all entries of the account
	v.that(schemaValid, len(wrong) == 0, func() Finding {
		return of(e, "values that the ledger writes", list(wrong), "Columns of the entry hold what the ledger never writes.")
	})
}

// of makes a finding about an entry.
func of(e *Entry, expected, actual, message string) Finding {
	n := e.Number
	return Finding{UserID: e.User, Currency: e.Currency, Seq: &n, Expected: expected, Actual: actual, Message: message}
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// quote shows a text of the database, however long it is made there.
func quote(text string) string { return fmt.Sprintf("%.130q", text) }

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
