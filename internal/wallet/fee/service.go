package fee

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/wallet"
)

// Activation is an activated version of the rules. It is immutable. The newest version is
// in force.
type Activation struct {
	Version int64
	Set     *Set
	Digest  string // digest of the canonical text
	Source  string // origin: "built-in", a file, an address, or "version 3" after a rollback
	Mark    string // change marker of the source; see Loaded
	At      time.Time
	By      string // user who activated the version

	Previous wallet.Hash // MAC of the previous version; zero: start of the chain
	Seal     wallet.Seal
}

// Sealed returns the content of the activation that is sealed.
func (a *Activation) Sealed() *wallet.Rules {
	return &wallet.Rules{
		Number: a.Version, Digest: a.Digest, Source: a.Source, Mark: a.Mark, At: a.At, By: a.By, Previous: a.Previous, Seal: a.Seal,
	}
}

// Loaded is the result of Source.Load.
type Loaded struct {
	Set  *Set   // nil: unchanged since the given mark
	Mark string // marker to detect changes at the next load; may be empty
}

// Source provides fee rules.
type Source interface {
	Name() string
	// Load reads and validates the rules. mark is the mark of the active set if it came from
	// this source. Errors are faults: of kind Upstream if the source is unreadable, and of
	// kind Unprocessable if its content is invalid.
	Load(ctx context.Context, mark string) (Loaded, error)
}

// ErrNone means that the version does not exist.
var ErrNone = errors.New("no such version of the fee rules")

// Service activates sets of rules. It is safe for concurrent use.
type Service struct {
	Store  *db.DB
	Keys   *wallet.Ring // keys that seal versions
	Source Source       // nil: the built-in set
	// Unused states that the ledger is empty. No payment then depends on the stored rules, so
	// Begin may start a new chain if they were changed or their key was lost.
	Unused bool
	Now    func() time.Time
	Logger *slog.Logger
}

// Result is the result of an activation or of a dry run.
type Result struct {
	Version  int64 // active version afterwards
	Previous int64 // active version before
	Changed  bool
	Diff
	Large []LargeChange // large changes; confirmed unless this was a dry run
}

// Request is a request for a refresh or rollback.
type Request struct {
	DryRun     bool // report without activating
	AllowLarge bool
	By         string
}

// builtIn is the source name of the built-in set.
const builtIn = "built-in"

// SourceName returns the name of the source.
func (s *Service) SourceName() string {
	if s.Source == nil {
		return builtIn
	}
	return s.Source.Name()
}

// Begin activates the rules of the source if no version exists. It activates the built-in
// set if the source is unavailable, so that a start does not depend on other services. If
// the active version was tampered with, Begin logs an error, and the service refuses
// payments.
func (s *Service) Begin(ctx context.Context) error {
	active, err := ReadActivation(ctx, s.Store, 0)
	if err == nil {
		err = s.Keys.CheckRules(active.Sealed())
	}
	if err == nil {
		s.logActive(active)
		return nil
	}
	if unsealed(err) && !s.Unused {
		s.Logger.Error("active fee rules unverified; payments are refused", "error", err)
		return nil
	}
	if !errors.Is(err, ErrNone) && !unsealed(err) {
		return fmt.Errorf("fee rules: %w", err)
	}
	name := s.SourceName()
	loaded, err := s.load(ctx, "")
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.Logger.Warn("fee rules unavailable; built-in rules are active", "source", name, "error", err)
		loaded, name = Loaded{Set: BuiltIn()}, builtIn
	}
	first, err := newActivation(loaded, name, "start")
	if err != nil {
		return err
	}
	err = s.Store.InTx(ctx, func(tx *db.Tx) error {
		if err := holdRules(tx); err != nil {
			return err
		}
		newest, err := findActivation(tx, 0)
		if err == nil {
			err = s.Keys.CheckRules(newest.Sealed())
		}
		if active = newest; !errors.Is(err, ErrNone) && !unsealed(err) {
			return err // another process activated first
		}
		active = first
		active.Version = newest.Version + 1
		return s.add(tx, active)
	})
	if err != nil {
		return fmt.Errorf("fee rules: %w", err)
	}
	s.logActive(active)
	return nil
}

// unsealed reports whether an error means that the rules were changed or that their key is
// missing.
func unsealed(err error) bool {
	return errors.Is(err, wallet.ErrTampered) || errors.Is(err, wallet.ErrNoKey)
}

func (s *Service) logActive(a Activation) {
	if a.Source != s.SourceName() {
		s.Logger.Warn("active fee rules differ from the configured source", "version", a.Version, "source", a.Source, "named", s.SourceName())
		return
	}
	s.Logger.Info("fee rules active", "version", a.Version, "source", a.Source)
}

func newActivation(l Loaded, source, by string) (Activation, error) {
	_, digest, err := l.Set.Canonical()
	if err != nil {
		return Activation{}, fmt.Errorf("fee rules: %w", err)
	}
	return Activation{Set: l.Set, Digest: digest, Source: source, Mark: l.Mark, By: by}, nil
}

func (s *Service) load(ctx context.Context, mark string) (Loaded, error) {
	if s.Source == nil {
		return Loaded{Set: BuiltIn()}, nil
	}
	return s.Source.Load(ctx, mark)
}

// Candidate returns the active version and the version that a refresh would activate now. It
// returns the errors of the source.
func (s *Service) Candidate(ctx context.Context, by string) (active, next Activation, err error) {
	if active, err = ReadActivation(ctx, s.Store, 0); err != nil {
		return active, next, fmt.Errorf("fee rules: %w", err)
	}
	mark := ""
	if active.Source == s.SourceName() {
		mark = active.Mark
	}
	loaded, err := s.load(ctx, mark)
	if err != nil {
		return active, next, err
	}
	if loaded.Set == nil {
		loaded = Loaded{Set: active.Set, Mark: active.Mark}
	}
	next, err = newActivation(loaded, s.SourceName(), by)
	return active, next, err
}

// Refresh loads the rules of the source, validates them, and activates them as the next
// version. An unchanged set creates no version. It returns the errors of the source. If
// there are large changes that the request does not allow, it returns a fault of kind
// Conflict that lists them. After an error the active set is unchanged. A dry run reports
// large changes in its result.
func (s *Service) Refresh(ctx context.Context, r Request) (Result, error) {
	_, next, err := s.Candidate(ctx, r.By)
	if err != nil {
		return Result{}, err
	}
	return s.activate(ctx, next, r, !r.AllowLarge)
}

// Rollback activates the rules of an earlier version as the next version. Large changes
// need no confirmation because an operator chose the version. The error is a fault of kind
// NotFound if the version does not exist.
func (s *Service) Rollback(ctx context.Context, version int64, r Request) (Result, error) {
	old, err := s.Version(ctx, version)
	if err == nil {
		err = s.Keys.CheckRules(old.Sealed())
	}
	if err != nil {
		return Result{}, err
	}
	next := Activation{Set: old.Set, Digest: old.Digest, Source: fmt.Sprintf("version %d", version), By: r.By}
	return s.activate(ctx, next, r, false)
}

// Version returns a version of the rules. Version 0 is the active one. The error is a
// fault of kind NotFound if the version does not exist.
func (s *Service) Version(ctx context.Context, version int64) (Activation, error) {
	a, err := ReadActivation(ctx, s.Store, version)
	switch {
	case errors.Is(err, ErrNone):
		return a, fault.New(fault.NotFound, "fee_version_not_found", "There is no version %d of the fee rules.", version)
	case err != nil:
		return a, fmt.Errorf("fee rules: %w", err)
	}
	return a, nil
}

// Quote explains the fee of a payment with a version of the rules. Version 0 is the active
// one.
func (s *Service) Quote(ctx context.Context, version int64, p Payment) (Explanation, error) {
	a, err := s.Version(ctx, version)
	if err == nil {
		err = s.Keys.CheckRules(a.Sealed())
	}
	if err != nil {
		return Explanation{}, err
	}
	return Explain(a.Set, p)
}

// errActivatedMeanwhile means that another request activated a version in the meantime.
var errActivatedMeanwhile = errors.New("another version was activated")

// activate makes next the active version unless the rules are equal. Comparing sets may
// take a second. It is therefore done before the transaction, which only checks that the
// active version is unchanged.
func (s *Service) activate(ctx context.Context, next Activation, r Request, refuseLarge bool) (Result, error) {
	const tries = 5
	for range tries {
		active, err := ReadActivation(ctx, s.Store, 0)
		if err != nil {
			return Result{}, fmt.Errorf("fee rules: %w", err)
		}
		result := Result{Version: active.Version, Previous: active.Version, Diff: Compare(active.Set, next.Set)}
		if active.Digest == next.Digest {
			return result, nil
		}
		result.Large = LargeChanges(active.Set, next.Set, s.Now())
		if refuseLarge && !r.DryRun && len(result.Large) > 0 {
			return Result{}, tooLargeChange(result.Large)
		}
		result.Version, result.Changed = active.Version+1, true
		if r.DryRun {
			return result, nil
		}
		next.Version = result.Version
		err = s.Store.InTx(ctx, func(tx *db.Tx) error { return s.addAfter(tx, active.Version, next) })
		if errors.Is(err, errActivatedMeanwhile) {
			continue
		}
		if err != nil {
			return Result{}, fmt.Errorf("fee rules: %w", err)
		}
		s.Logger.Info("fee rules activated", "version", next.Version, "source", next.Source, "by", next.By)
		return result, nil
	}
	return Result{}, fault.New(fault.Conflict, "fee_rules_moved", "Another request activated fee rules at the same time. Retry.")
}

// addAfter adds a version if the newest version is still the compared one. It returns an
// error if the newest version does not match its seal.
func (s *Service) addAfter(tx *db.Tx, newest int64, next Activation) error {
	if err := holdRules(tx); err != nil {
		return err
	}
	active, err := findActivation(tx, 0)
	switch {
	case err != nil:
		return err
	case active.Version != newest:
		return errActivatedMeanwhile
	}
	if err := s.Keys.CheckRules(active.Sealed()); err != nil {
		return err
	}
	next.Previous = active.Seal.MAC
	return s.add(tx, next)
}

// add seals and inserts a version.
func (s *Service) add(tx *db.Tx, a Activation) error {
	a.At = tx.Now()
	sealed := a.Sealed()
	s.Keys.Sealer().Seal(sealed)
	a.Seal = sealed.Seal
	return addRules(tx, a)
}

func tooLargeChange(changes []LargeChange) error {
	f := fault.New(fault.Conflict, "large_fee_change",
		"Fees would change by over half, or by over five percent of the amount; see errors. The active rules are unchanged. If this change is intended, repeat the refresh with allowLargeChange=1.")
	for _, c := range changes {
		f.Fields = append(f.Fields, fault.Field{Pointer: c.Pointer, Code: "large_change", Detail: c.String()})
	}
	return f
}
