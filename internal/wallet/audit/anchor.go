package audit

import (
	"errors"
	"io"

	"assay/internal/fault"
	"assay/internal/wallet"
)

// anchor is what the ledger is compared with: a checkpoint that a user kept, and the
// newest stored one. They are opened before the ledger is read, so that neither is
// newer than it.
type anchor struct {
	given  *wallet.UserCheckpoint
	stored io.ReadCloser
	reason string // why it cannot be compared with the one that counts
}

// anchorOf opens the checkpoints. That of the request counts, or else the stored one.
// Where both are there the ledger must not contradict the stored one either: otherwise
// a checkpoint of a ledger that was set back would hide that it was.
func (a *Auditor) anchorOf(user, checkpoint string) (*anchor, error) {
	out := &anchor{}
	if checkpoint != "" {
		if err := a.given(out, user, checkpoint); err != nil {
			return nil, err
		}
	}
	if a.Stored == nil {
		return out, nil
	}
	stored, err := a.Stored()
	if err != nil && checkpoint == "" {
		out.reason = "the newest stored checkpoint cannot be read"
	}
	if err == nil {
		out.stored = stored
	}
	return out, nil
}

// given reads the checkpoint that the caller presents.
func (a *Auditor) given(out *anchor, user, checkpoint string) error {
	c, err := wallet.DecodeUserCheckpoint(checkpoint, a.Keys)
	switch {
	case errors.Is(err, wallet.ErrNoKey):
		out.reason = err.Error() + ": the checkpoint cannot be verified"
		return nil
	case err != nil:
		return fault.New(fault.Invalid, "invalid_checkpoint", "The checkpoint is damaged, or was not made by this ledger.")
	case c.User != user:
		return fault.New(fault.Invalid, "invalid_checkpoint", "The checkpoint belongs to another user.")
	}
	out.given = c
	return nil
}

func (a *anchor) close() {
	if a.stored != nil {
		_ = a.stored.Close() // it was only read
	}
}

// anchors compares the ledger with checkpoints, and reports whether they name the
// user.
func (v *audit) anchors(a *anchor) (named bool, err error) {
	if a.stored != nil {
		var unusable string
		if named, unusable, err = v.stored(a.stored); err != nil {
			return named, err
		}
		if unusable != "" && a.given == nil && a.reason == "" {
			a.reason = unusable
		}
	}
	if a.given != nil {
		v.reasons[anchorMatch] = "compared with the given checkpoint of " + stamp(a.given.At)
		named = named || len(a.given.Marks) > 0
		err = v.compare(a.given.Marks)
	}
	if a.reason != "" {
		v.skip(anchorMatch, a.reason)
	}
	return named, err
}

// stored compares with a checkpoint of all accounts. Nothing of it counts unless
// its end shows that it is what was written, so that what was found is taken back
// where it is not; unusable is then the reason.
func (v *audit) stored(r io.Reader) (named bool, unusable string, err error) {
	before := v.tally.clone()
	var marks []wallet.Mark
	at, err := wallet.ReadCheckpoint(r, v.Keys, func(m wallet.Mark) error {
		if m.OfRules() {
			return database(v.compareRules(m))
		}
		if v.only != "" && m.User != v.only && (wallet.HouseName(m.User) != v.only || !wallet.IsHouse(m.User)) {
			return nil
		}
		named = true
		if marks = append(marks, m); len(marks) < page {
			return nil
		}
		defer func() { marks = marks[:0] }()
		return database(v.compare(marks))
	})
	if err == nil {
		err = database(v.compare(marks))
	}
	if wrong := (*databaseError)(nil); errors.As(err, &wrong) {
		return named, "", wrong.error
	}
	if err != nil {
		v.tally = before
		return false, "the newest stored checkpoint cannot be used: " + reason(err), nil
	}
	v.reasons[anchorMatch] = "compared with the stored checkpoint of " + stamp(at)
	return named, "", nil
}

// databaseError is an error that is not the checkpoint's.
type databaseError struct{ error }

func database(err error) error {
	if err == nil {
		return nil
	}
	return &databaseError{err}
}

// reason returns the text of an error without file names.
func reason(err error) string {
	if errors.Is(err, wallet.ErrNoKey) || errors.Is(err, wallet.ErrCheckpoint) {
		return err.Error()
	}
	return "it cannot be read"
}

// compare compares accounts with a checkpoint.
func (v *audit) compare(marks []wallet.Mark) error {
	if len(marks) == 0 {
		return nil
	}
	places := make([]Place, len(marks))
	accounts := map[wallet.Account]*Head{}
	for i, m := range marks {
		places[i] = Place{m.Account, m.Number}
		accounts[m.Account] = nil
	}
	hashes, err := v.verified(places)
	if err != nil {
		return err
	}
	if err := v.headsAt(accounts); err != nil {
		return err
	}
	for i, m := range marks {
		v.covered(m)
		hash, there := hashes[places[i]]
		v.that(anchorMatch, there && hash == m.Hash, func() Finding {
			actual := "none that is what was sealed"
			if there {
				actual = hash.String()
			}
			n := m.Number
			return Finding{
				UserID: m.User, Currency: m.Currency, Seq: &n, Expected: m.Hash.String(), Actual: actual,
				Message: "The checkpoint names this entry, and the ledger has another one or none in its place.",
			}
		})
		if accounts[m.Account] == nil {
			v.fail(headPresent, Finding{
				UserID: m.User, Currency: m.Currency, Expected: "an account row", Actual: "none", Message: "The checkpoint names this account, and it is not there.",
			})
		}
	}
	return nil
}

// compareRules compares the fee rules with a checkpoint.
func (v *audit) compareRules(m wallet.Mark) error {
	if v.only != "" || m.Number == 0 {
		return nil
	}
	rows, err := v.records.FeeVersions(m.Number-1, 1)
	if err != nil {
		return err
	}
	intact := false
	if len(rows) == 1 && rows[0].Number == m.Number {
		intact, _ = v.sealer.Intact(&rows[0].Rules)
	}
	v.that(anchorMatch, intact && rows[0].MAC == m.Hash, func() Finding {
		return Finding{
			Expected: "version " + integer(m.Number), Actual: "another one, or none",
			Message: "The checkpoint names this version of the fee rules, and another one or none is in its place.",
		}
	})
	return nil
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
