package audit

import (
	"errors"
	"io"
	"maps"
	"slices"

	"assay/internal/fault"
	"assay/internal/wallet"
)

// anchor holds the checkpoints that the ledger is compared with: the checkpoint of the
// request and the newest stored checkpoint. They are opened before the ledger is read, so
// neither can be newer than the ledger.
type anchor struct {
	given  *wallet.UserCheckpoint
	stored io.ReadCloser
	reason string // why the comparison is impossible
}

// anchorOf opens the checkpoints. If both exist, the ledger is compared with both, because
// a checkpoint that was taken after the database was set back would hide the rollback. A
// stored checkpoint that cannot be read matters only if the request has none.
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

// given decodes the checkpoint of the request.
func (a *Auditor) given(out *anchor, user, checkpoint string) error {
	c, err := wallet.DecodeUserCheckpoint(checkpoint, a.Keys)
	switch {
	case errors.Is(err, wallet.ErrNoKey):
		out.reason = err.Error() + ": the checkpoint cannot be verified"
		return nil
	case err != nil:
		return fault.New(fault.Invalid, "invalid_checkpoint", "The checkpoint is damaged or belongs to another ledger. Use a checkpoint that this server returned.")
	case c.User != user:
		return fault.New(fault.Invalid, "invalid_checkpoint", "The checkpoint belongs to another user.")
	}
	out.given = c
	return nil
}

func (a *anchor) close() {
	if a.stored != nil {
		_ = a.stored.Close() // ignore the error: the file was only read
	}
}

// anchors compares the ledger with checkpoints.
type anchors struct {
	*audit
	suspects map[wallet.Account][]*suspect // suspected transactions, by the accounts of their entries
}

// suspect is a transaction that no longer matches the hash in its entries, or whose trade
// no longer matches the terms in the transaction. If a checkpoint covers one of the
// entries, the change happened after the checkpoint, even if the row was sealed again with
// a valid key.
type suspect struct {
	Finding
	numbers  map[wallet.Account]int64 // numbers of its entries
	reported bool
}

// maxSuspects is the maximum number of suspects that are compared with a checkpoint. Each
// suspect already fails another check.
const maxSuspects = 1000

// suspect records a failed transaction for the comparison with checkpoints.
func (v *audit) suspect(f Finding) {
	if v.suspected[f.transaction] == nil && len(v.suspected) < maxSuspects {
		v.suspected[f.transaction] = &suspect{Finding: f, numbers: map[wallet.Account]int64{}}
	}
}

// arrange looks up the entries of the suspects.
func (v *anchors) arrange() error {
	v.suspects = map[wallet.Account][]*suspect{}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(v.suspected)), page) {
		entries, err := v.records.EntriesOf(ids)
		if err != nil {
			return err
		}
		for i := range entries {
			e := &entries[i]
			s := v.suspected[e.Transaction]
			if s == nil {
				continue // the stored id has another type; the check of its account reports this
			}
			if s.Seq == nil && (v.only == "" || e.User == v.only) {
				s.UserID, s.Currency, s.Seq = e.User, e.Currency, &e.Number
			}
			if _, there := s.numbers[e.Account]; !there {
				s.numbers[e.Account] = e.Number
				v.suspects[e.Account] = append(v.suspects[e.Account], s)
			}
		}
	}
	return nil
}

// covered fails anchor_match for each suspect that a mark covers, once per suspect.
func (v *anchors) covered(m wallet.Mark) {
	for _, s := range v.suspects[m.Account] {
		if s.reported || s.numbers[m.Account] > m.Number {
			continue
		}
		s.reported = true
		f := s.Finding
		f.transaction = 0
		f.Message = "Changed after the checkpoint that covers it. " + f.Message
		v.fail(anchorMatch, f)
	}
}

// verify compares the ledger with the checkpoints. It reports whether a checkpoint names
// the user.
func (v *anchors) verify(a *anchor) (named bool, err error) {
	if err := v.arrange(); err != nil {
		return false, err
	}
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

// stored compares the ledger with a checkpoint of all accounts. The seal is at the end of
// the checkpoint. If the checkpoint is invalid, stored discards the findings and returns
// the reason in unusable.
func (v *anchors) stored(r io.Reader) (named bool, unusable string, err error) {
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

// databaseError marks an error of the database, as opposed to one of the checkpoint.
type databaseError struct{ error }

func database(err error) error {
	if err == nil {
		return nil
	}
	return &databaseError{err}
}

// reason returns the message of an error without file names.
func reason(err error) string {
	if errors.Is(err, wallet.ErrNoKey) || errors.Is(err, wallet.ErrCheckpoint) {
		return err.Error()
	}
	return "it cannot be read"
}

// compare compares accounts with the marks of a checkpoint.
func (v *anchors) compare(marks []wallet.Mark) error {
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
		v.require(anchorMatch, there && hash == m.Hash, func() Finding {
			actual := "no entry that matches its seal"
			if there {
				actual = hash.String()
			}
			n := m.Number
			return Finding{
				UserID: m.User, Currency: m.Currency, Seq: &n, Expected: m.Hash.String(), Actual: actual,
				Message: "The ledger does not have the entry that the checkpoint names.",
			}
		})
		if accounts[m.Account] == nil {
			v.fail(headPresent, Finding{
				UserID: m.User, Currency: m.Currency, Expected: "an account row", Actual: "none", Message: "The account that the checkpoint names does not exist.",
			})
		}
	}
	return nil
}

// compareRules compares the version of the fee rules that a checkpoint names with the
// stored version.
func (v *anchors) compareRules(m wallet.Mark) error {
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
	v.require(anchorMatch, intact && rows[0].MAC == m.Hash, func() Finding {
		return Finding{
			Expected: "version " + integer(m.Number), Actual: "another version, or none",
			Message: "The ledger does not have the version of the fee rules that the checkpoint names.",
		}
	})
	return nil
}

// verified returns the hashes of the entries that match their seal. A stored hash proves
// nothing without a valid seal.
func (v *anchors) verified(places []Place) (map[Place]wallet.Hash, error) {
	out := make(map[Place]wallet.Hash, len(places))
	for chunk := range slices.Chunk(places, page) {
		rows, err := v.records.EntriesAt(chunk)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if intact, _ := v.sealer.EntryIntact(&rows[i].Entry); intact {
				out[rows[i].place()] = rows[i].Hash
			}
		}
	}
	return out, nil
}

// headsAt fills accounts with the stored rows.
func (v *anchors) headsAt(accounts map[wallet.Account]*Head) error {
	names := make([]wallet.Account, 0, len(accounts))
	for a := range accounts {
		names = append(names, a)
	}
	for chunk := range slices.Chunk(names, page) {
		rows, err := v.records.HeadsOf(chunk)
		if err != nil {
			return err
		}
		for i := range rows {
			accounts[rows[i].Account] = &rows[i]
		}
	}
	return nil
}
