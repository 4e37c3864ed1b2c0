package wallet

import (
	"crypto/sha256"
	"fmt"
	"time"

	"assay/internal/fault"
	"assay/internal/money"
)

// Seal is the seal of a row outside the ledger that decides about money.
type Seal struct {
	Version int // of the bytes under the MAC
	KeyID   string
	MAC     Hash
}

// Trade is the row of a trade as it is sealed, whenever it changes. Amounts are
// minor units; a time that is yet to come is zero.
type Trade struct {
	ID, Listing            int64
	Seller, Buyer          string // user ids
	AppID                  int64
	ContextID, AssetID     string
	Item, Amount           int64
	Price                  int64
	Currency               money.Currency
	PaymentMethod, Country string
	Fee, Net               int64
	FeeRule                string
	FeeVersion             int64
	Transaction            int64 // the sale's
	State                  string
	CreatedAt, CompletedAt time.Time
	SettleAt, SettledAt    time.Time
	ReversedAt             time.Time
	Volume, Ranked         int64
	Seal
}

// terms is what a transaction covers of its trade: all but the transaction's own id,
// the state, which follows from the trade's transactions, and the seal.
type terms Trade

// Terms returns the digest of a trade by which its transactions cover it.
func (t *Trade) Terms() Hash { return sha256.Sum256(canonical(nil, (*terms)(t))) }

// Rules is a version of the fee rules as it is sealed, in a chain of all versions.
// The digest covers its content.
type Rules struct {
	Number       int64 // 1, 2, 3 and so on
	Digest       string
	Source, Mark string // where it is from
	At           time.Time
	By           string // who activated it
	Previous     Hash   // the MAC of the version before; zero: the chain begins here
	Seal
}

// StoredResponse is the response to a request that moved money. It is returned
// again when the client repeats the request.
type StoredResponse struct {
	Route, Role, User, Key string // of the request, by which it is found
	Request                Hash   // SHA-256 of the request
	Status                 int
	ContentType, Location  string
	Body                   []byte
	Expires                time.Time // zero: never
	Seal
}

func (t *Trade) buyer() Account { return Account{t.Buyer, t.Currency} }

func (t *Trade) seller() Account { return Account{t.Seller, t.Currency} }

// sealed is a record that carries a Seal.
type sealed interface {
	record
	seal() *Seal
}

func (s *Seal) seal() *Seal { return s }

// Seal completes a trade, a version of the fee rules or an answer whose other fields
// are set.
func (s *Sealer) Seal(r sealed) {
	seal := r.seal()
	seal.Version, seal.KeyID = Version, s.ring.keys[0].ID
	seal.MAC = s.own(r)
}

// Intact reports whether a trade, a version of the fee rules or an answer is what was
// sealed. Of rules it does not look at their text, nor at the version before. The
// error is an ErrNoKey.
func (s *Sealer) Intact(r sealed) (bool, error) {
	seal := r.seal()
	return s.intact(r, seal.Version, seal.KeyID, seal.MAC)
}

// CheckTrade refuses a trade that is not what was sealed: nothing is done upon it.
func (r *Ring) CheckTrade(t *Trade) error {
	intact, err := r.Sealer().Intact(t)
	if intact && err == nil {
		return nil
	}
	return examined(err, fmt.Sprintf("trade %d", t.ID), fault.New(fault.Damaged, "trade_tampered",
		"Trade %d was changed outside the service, so its money is not moved. Verify the ledger, and restore the trade from a backup.", t.ID))
}

// CheckRules refuses a version of the fee rules that is not what was activated:
// nothing is charged by it.
func (r *Ring) CheckRules(v *Rules) error {
	intact, err := r.Sealer().Intact(v)
	if intact && err == nil {
		return nil
	}
	return examined(err, fmt.Sprintf("version %d of the fee rules", v.Number), RulesTampered(v.Number))
}

// CheckResponse refuses a stored response whose seal does not match.
func (r *Ring) CheckResponse(a *StoredResponse) error {
	intact, err := r.Sealer().Intact(a)
	if intact && err == nil {
		return nil
	}
	return examined(err, fmt.Sprintf("the stored response of key %.255q of %.130q", a.Key, a.User), fault.New(fault.Damaged, "answer_tampered",
		"The stored response of this Idempotency-Key was changed outside the service, so nothing was done. "+
			"The wallet's entries show whether money was moved under the key. Restore the response from a backup."))
}

// RulesTampered returns the fault for a version of the fee rules that was changed.
func RulesTampered(version int64) *fault.Error {
	return fault.New(fault.Damaged, "fee_rules_tampered",
		"Version %d of the fee rules was changed after its activation, so it is not used. Verify the ledger, and restore the rules from a backup.", version)
}

// examined returns the error for a wrong seal: the row for the log, and a fault for
// callers.
func examined(err error, what string, refusal *fault.Error) error {
	if err == nil {
		return fmt.Errorf("%w: %s: %w", ErrTampered, what, refusal)
	}
	return fmt.Errorf("%s: %w: %w", what, err, fault.New(fault.Damaged, "ledger_key_missing",
		"The ledger has rows sealed with a key that this server lacks, so it refuses to use them. Add that key to WALLET_LEDGER_KEY, after the current one, and restart."))
}
