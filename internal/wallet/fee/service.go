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

// Activation is a version of the rules: a set that was made the active one. It
// never changes; the newest is in force.
type Activation struct {
	Version int64
	Set     *Set
	Digest  string // of the canonical form
	Source  string // where it is from: "built-in", a file or an address, "version 3"
	Mark    string // of the source, see Loaded
	At      time.Time
	By      string // who activated it

	Previous wallet.Hash // of the version before; zero: the chain of seals begins here
	Seal     wallet.Seal
}

// Sealed is the activation as it is sealed.
func (a *Activation) Sealed() *wallet.Rules {
	return &wallet.Rules{
		Number: a.Version, Digest: a.Digest, Source: a.Source, Mark: a.Mark, At: a.At, By: a.By, Previous: a.Previous, Seal: a.Seal,
	}
}

// Loaded is what a source holds.
type Loaded struct {
	Set  *Set   // nil: unchanged since the given mark
	Mark string // by which a later load detects a change; may be empty
}

// Source is where rules come from.
type Source interface {
	Name() string
	// Load reads and checks the whole. mark is that of the active set where that is
	// from this source. Errors are faults: of kind Upstream where the source cannot
	// be read, of kind Unprocessable where what it holds is no set.
	Load(ctx context.Context, mark string) (Loaded, error)
}

// ErrNone means that there is no such version.
var ErrNone = errors.New("no such version of the fee rules")

// Service activates sets of rules. Its methods may be used concurrently.
type Service struct {
	Store  *db.DB
	Keys   *wallet.Ring // that versions are sealed with
	Source Source       // nil: the built-in set
	// Unused reports that the ledger is empty. Then no payment depends on rules that
	// were changed or whose key is lost, and Begin starts a new chain of versions.
	Unused bool
	Now    func() time.Time
	Logger *slog.Logger
}

// Result is what an activation did, or would do.
type Result struct {
	Version  int64 // the active one afterwards
	Previous int64 // the active one before
	Changed  bool
	Diff
	Large []LargeChange // found; allowed, unless this was a dry run
}

// Request is a request for a refresh or rollback.
type Request struct {
	DryRun     bool // only report
	AllowLarge bool
	By         string
}

// builtIn is the name of the built-in set as a source.
const builtIn = "built-in"

// SourceName names where a refresh reads rules from.
func (s *Service) SourceName() string {
	if s.Source == nil {
		return builtIn
	}
	return s.Source.Name()
}

// Begin activates the source's rules as version 1 if there is no version yet, or the
// built-in set if the source is unavailable: a start does not depend on other
// services. If the active version was changed, payments are refused and everything
// else works.
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
			return err // another process was faster
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

// unsealed reports whether an error means that rules were changed, or that their key
// is missing.
func unsealed(err error) bool {
	return errors.Is(err, wallet.ErrTampered) || errors.Is(err, wallet.ErrNoKey)
}

func (s *Service) logActive(a Activation) {
	if a.Source != s.SourceName() {
		s.Logger.Warn("active fee rules differ from the configured source", "version", a.Version, "source", a.Source, "named", s.SourceName())
		return
	}
	s.Logger.Info("fee rules", "version", a.Version, "source", a.Source)
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

// Refresh loads the source, checks all of it, and activates it as the next
// version. An unchanged set creates no version. Its errors are those of the
// source, and a fault of kind Conflict that lists the large changes unless those
// are allowed; whatever it is, the active set stays. A dry run reports large
// changes in its result instead.
func (s *Service) Refresh(ctx context.Context, r Request) (Result, error) {
	active, err := ReadActivation(ctx, s.Store, 0)
	if err != nil {
		return Result{}, fmt.Errorf("fee rules: %w", err)
	}
	mark := ""
	if active.Source == s.SourceName() {
		mark = active.Mark
	}
	loaded, err := s.load(ctx, mark)
	if err != nil {
		return Result{}, err
	}
	if loaded.Set == nil {
		loaded = Loaded{Set: active.Set, Mark: active.Mark}
	}
	next, err := newActivation(loaded, s.SourceName(), r.By)
	if err != nil {
		return Result{}, err
	}
	return s.activate(ctx, next, r, !r.AllowLarge)
}

// Rollback activates the rules of an earlier version as the next version. An operator
// decides it, so large changes need no confirmation. Its error is a fault
// of kind NotFound where there is no such version.
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

// Version returns a version, 0: the active one. Its error is a fault of kind
// NotFound where there is no such version.
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

// Quote explains the fee of a payment by a version; 0: the active one.
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

// errMoved means that another version was activated meanwhile.
var errMoved = errors.New("another version was activated")

// activate makes next the version after the active one, unless the rules are equal.
// What is compared is compared before the transaction, which only sees that it
// still holds: it may take a second, and others write.
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
		if errors.Is(err, errMoved) {
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

// addAfter adds a version if the newest is still the one that it was compared
// with. Upon one that is not what was activated nothing is built.
func (s *Service) addAfter(tx *db.Tx, newest int64, next Activation) error {
	if err := holdRules(tx); err != nil {
		return err
	}
	active, err := findActivation(tx, 0)
	switch {
	case err != nil:
		return err
	case active.Version != newest:
		return errMoved
	}
	if err := s.Keys.CheckRules(active.Sealed()); err != nil {
		return err
	}
	next.Previous = active.Seal.MAC
	return s.add(tx, next)
}

// add seals a version and adds it.
func (s *Service) add(tx *db.Tx, a Activation) error {
	a.At = tx.Now()
	sealed := a.Sealed()
	s.Keys.Sealer().Seal(sealed)
	a.Seal = sealed.Seal
	return addRules(tx, a)
}

func tooLargeChange(changes []LargeChange) error {
	f := fault.New(fault.Conflict, "large_fee_change",
		"Fees would change by over half, or by over five percent of the amount; see errors. If that is meant, refresh with allowLargeChange=1. The active rules stay.")
	for _, c := range changes {
		f.Fields = append(f.Fields, fault.Field{Pointer: c.Pointer, Code: "large_change", Detail: c.String()})
	}
	return f
}
