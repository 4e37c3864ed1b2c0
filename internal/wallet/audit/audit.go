package audit

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"assay/internal/fault"
	"assay/internal/user"
	"assay/internal/wallet"
)

// Auditor verifies. It may be used concurrently.
type Auditor struct {
	Keys *wallet.Ring
	// Read hands over the ledger, once, as it is at one moment after the call.
	Read func(ctx context.Context, use func(*Snapshot) error) error
	// Stored opens the newest checkpoint that is kept outside the database; nil, or a
	// nil reader: there is none.
	Stored func() (io.ReadCloser, error)
	// Scopes are those under which requests about a user are kept; nil: none.
	Scopes func(user string) []string
	Now    func() time.Time
}

// Progress is how far a verification of everything is.
type Progress struct{ Done, Total int64 } // rows

// VerifyUser verifies the accounts of one user, and whatever else belongs to the
// transactions and trades that the user has part in. It compares with the
// checkpoint, as an earlier Report had it, or with the newest stored one where that
// is empty. The error is a fault.NotFound where nothing ever named the user, and a
// fault.Invalid where the checkpoint is none of this user and ledger; what is found
// is no error.
func (a *Auditor) VerifyUser(ctx context.Context, user, checkpoint string) (*Report, error) {
	anchor, err := a.anchorOf(user, checkpoint)
	if err != nil {
		return nil, err
	}
	defer anchor.close()
	v := a.newAudit(user)
	if err := v.read(ctx, func() error { return v.verify(anchor) }); err != nil {
		return nil, err
	}
	return v.report(), nil
}

// VerifyAll verifies everything. progress is called now and then; it may be nil.
func (a *Auditor) VerifyAll(ctx context.Context, progress func(Progress)) (*FullReport, error) {
	v := a.newAudit("")
	v.onProgress = progress
	return a.all(ctx, v)
}

// Marks verifies everything, and passes the end of every chain to add, in the order of
// a checkpoint. They count only if the report is ok: add got them before that was known.
// The error may be that of add.
func (a *Auditor) Marks(ctx context.Context, add func(wallet.Mark) error) (*FullReport, error) {
	v := a.newAudit("")
	var failed error
	v.add = func(m wallet.Mark) {
		if failed == nil {
			failed = add(m)
		}
	}
	r, err := a.all(ctx, v)
	if err == nil && r.OK {
		err = failed
	}
	return r, err
}

func (a *Auditor) all(ctx context.Context, v *audit) (*FullReport, error) {
	anchor, err := a.anchorOf("", "")
	if err != nil {
		return nil, err
	}
	defer anchor.close()
	if err := v.read(ctx, func() error { return v.verify(anchor) }); err != nil {
		return nil, err
	}
	return v.fullReport(a.Now()), nil
}

// read examines the ledger as it is at one moment, its schema first. Where that was
// changed the rest may be unreadable: PostgreSQL refuses to read what row security
// would hide. That fails no other check, and no other check passes.
func (v *audit) read(ctx context.Context, examine func() error) error {
	return v.Read(ctx, func(r *Snapshot) (err error) {
		v.records = r
		if err := v.schema(); err != nil {
			return err
		}
		if v.noted, err = r.Keys(); err == nil {
			err = examine()
		}
		if _, refused := errors.AsType[*fault.Error](err); err == nil || refused || v.failures[schemaGuard] == 0 || ctx.Err() != nil {
			return err
		}
		for c := range checks {
			if v.failures[c] == 0 {
				v.skip(c, "the database does not let the ledger be read as its schema is now")
			}
		}
		return nil
	})
}

// schema examines that the ledger's tables are those of the migration.
func (v *audit) schema() error {
	compared, changes, err := v.records.Schema()
	if err != nil {
		return err
	}
	for _, c := range changes {
		v.fail(schemaGuard, Finding{Expected: c.Expected, Actual: c.Actual, Message: "The schema is not what the migration makes: " + c.Object + "."})
	}
	v.examined[schemaGuard] = int64(compared)
	return nil
}

// How many rows are read at once: rows named one by one, and consecutive rows.
const (
	page  = 1000
	ahead = 2000
)

// audit is one verification.
type audit struct {
	tally
	*Auditor
	records    *Snapshot
	sealer     *wallet.Sealer
	noted      []wallet.KeyMark // keys that ever sealed something
	at         time.Time
	only       string // the user; empty: everything
	scope      scope  // of the user
	accounts   []Account
	marks      []wallet.Mark // where the chains of the user's accounts end
	entries    int64         // rows that were seen in their chains
	heads      int64
	payments   int64 // rows of transactions
	versions   int64 // rows of fee rules
	progress   Progress
	onProgress func(Progress)
	add        func(wallet.Mark)  // nil: no checkpoint is made of what is verified
	suspected  map[int64]*suspect // by transaction
}

func (a *Auditor) newAudit(of string) *audit {
	v := &audit{Auditor: a, sealer: a.Keys.Sealer(), at: a.Now().UTC().Truncate(time.Microsecond), only: of, suspected: map[int64]*suspect{}}
	if of == "" {
		return v
	}
	v.scope.names = append([]string{of}, wallet.ShardNames(of)...)
	if a.Scopes != nil {
		for _, name := range v.scope.names {
			v.scope.requests = append(v.scope.requests, a.Scopes(name)...)
		}
	}
	return v
}

// verify verifies everything, or what concerns the user: the rows of accounts, entries,
// transactions, trades and fee rules one by one, and then how they go with each other.
func (v *audit) verify(anchor *anchor) error {
	n, err := v.chains()
	if err != nil {
		return err
	}
	if err := (&transactions{audit: v}).verify(); err != nil {
		return err
	}
	rules := &feeRules{audit: v, oldest: math.MaxInt64}
	sold := &trades{audit: v, rules: rules}
	if err := sold.verify(n.Trades); err != nil {
		return err
	}
	if err := v.relations(); err != nil {
		return err
	}
	if v.only == "" {
		v.notes()
	}
	if v.only == "" || v.examined[feeCrosscheck] > 0 {
		if err := rules.chain(); err != nil {
			return err
		}
	}
	if v.only == "" {
		v.counted(feeCrosscheck, v.versions, n.Rules, "There are fee rules that have no version, or one that is taken.")
	}
	if err := v.place(); err != nil {
		return err
	}
	marked, err := (&anchors{audit: v}).verify(anchor)
	if err != nil {
		return err
	}
	return v.exists(sold.own > 0 || marked)
}

// chains verifies the accounts; of a house user, those of all its shards, which are
// reported as one. n counts the rows that there are.
func (v *audit) chains() (n Count, err error) {
	if v.only == "" {
		if n, err = v.records.Count(""); err != nil {
			return n, err
		}
		v.progress.Total = n.Entries + n.Transactions + n.Trades
		return n, (&chains{audit: v}).verify(n)
	}
	for _, name := range v.scope.names {
		its, err := v.records.Count(name)
		if err != nil {
			return n, err
		}
		n.Accounts, n.Entries = n.Accounts+its.Accounts, n.Entries+its.Entries
		if err := (&chains{audit: v, of: name}).verify(n); err != nil {
			return n, err
		}
	}
	if len(v.scope.names) > 1 {
		v.accounts, v.marks = joined(v.accounts), nil
	}
	return n, nil
}

// counted fails a check where there are other rows than were seen.
func (v *audit) counted(c check, seen, there int64, message string) {
	if seen != there {
		v.fail(c, Finding{UserID: v.only, Expected: integer(seen), Actual: integer(there), Message: message})
	}
}

// joined adds up accounts of one currency. What they have each for itself is none's.
func joined(shards []Account) (out []Account) {
	for _, s := range shards {
		s.HeadHash = ""
		i := slices.IndexFunc(out, func(a Account) bool { return a.Currency == s.Currency })
		if i < 0 {
			out = append(out, s)
			continue
		}
		a := &out[i]
		a.Entries, a.LastSeq = a.Entries+s.Entries, a.LastSeq+s.LastSeq
		a.ComputedBalance, a.ComputedHeld = a.ComputedBalance+s.ComputedBalance, a.ComputedHeld+s.ComputedHeld
		a.CachedBalance, a.CachedHeld = added(a.CachedBalance, s.CachedBalance), added(a.CachedHeld, s.CachedHeld)
	}
	slices.SortFunc(out, func(a, b Account) int { return strings.Compare(string(a.Currency), string(b.Currency)) })
	return out
}

// added adds two figures; where one is missing, so is the sum.
func added(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// exists decides whether the user has to have a wallet, and has; named is whether
// trades or a checkpoint name the user. The error is a fault.NotFound where nothing does.
func (v *audit) exists(named bool) error {
	switch {
	case v.heads > 0 || v.entries > 0:
		v.pass(walletExists)
	case v.only == "":
	case named || v.payments > 0:
		v.fail(walletExists, Finding{UserID: v.only, Expected: "an account", Actual: "none", Message: "Transactions, trades or a checkpoint name this user, and there is no account."})
	case !v.skipped[anchorMatch]: // else a checkpoint may name the user
		return user.NotFound()
	}
	return nil
}

// notes examines the notes of the ledger's keys.
func (v *audit) notes() {
	if v.heads == 0 {
		return
	}
	known := 0
	for _, k := range v.Keys.Marks() {
		i := slices.IndexFunc(v.noted, func(n wallet.KeyMark) bool { return n.ID == k.ID })
		if i < 0 {
			continue
		}
		known++
		v.that(schemaValid, v.noted[i].Check == k.Check, func() Finding {
			return Finding{Expected: "the note of key " + quote(k.ID), Actual: "another one", Message: "The note by which a start finds out that a key is missing was changed."}
		})
	}
	v.that(schemaValid, known > 0, func() Finding {
		return Finding{Expected: "a note of each key", Actual: "none", Message: "The notes are missing by which a start finds out that a key is."}
	})
}

// advance reports the progress of the verification.
func (v *audit) advance(rows int) {
	v.progress.Done += int64(rows)
	if v.onProgress != nil {
		v.onProgress(v.progress)
	}
}

// sealed verifies a seal, and reports whether it is right. A seal whose key is not
// there verifies nothing, so the row fails: wallet_key is in the same database, and an
// id that is added there must not turn a forgery into a skipped check.
func (v *audit) sealed(c check, intact bool, err error, keyID string, f func() Finding) bool {
	v.that(c, intact, func() Finding {
		found := f()
		if err != nil {
			found.Expected, found.Actual = "a seal by a key of the ledger", v.unknownKey(keyID)
		}
		return found
	})
	return intact
}

// unknownKey describes a key that verification does not have.
func (v *audit) unknownKey(id string) string {
	if slices.ContainsFunc(v.noted, func(n wallet.KeyMark) bool { return n.ID == id }) {
		return "key " + quote(id) + ", which is in wallet_key and not in WALLET_LEDGER_KEY"
	}
	return "key " + quote(id) + ", which the ledger never used"
}
