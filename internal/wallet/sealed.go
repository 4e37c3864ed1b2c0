package wallet

import (
	"crypto/sha256"
	"fmt"
	"time"

	"assay/internal/fault"
	"assay/internal/money"
)

// Seal is the seal of a row that is not part of the ledger but affects how money is posted.
type Seal struct {
	Version int // version of the canonical bytes
	KeyID   string
	MAC     Hash
}

// Trade is the sealed content of a trade's row. Every change of the row is sealed again.
// Amounts are in minor units. A time is zero until its event happens.
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
	Transaction            int64 // id of the sale's transaction
	State                  string
	CreatedAt, CompletedAt time.Time
	SettleAt, SettledAt    time.Time
	ReversedAt             time.Time
	Volume, Ranked         int64
	Seal
}

// terms are the fields of a trade that its transactions cover. The transaction id and the
// seal are not covered. The state is not covered because it follows from the trade's
// transactions.
type terms Trade

// Terms returns the digest of a trade's terms. The trade's transactions include the digest
// in their hash.
func (t *Trade) Terms() Hash { return sha256.Sum256(canonical(nil, (*terms)(t))) }

// Rules is a sealed version of the fee rules. All versions form a chain. Digest covers the
// document with the rules.
type Rules struct {
	Number       int64 // version number, starting at 1
	Digest       string
	Source, Mark string // origin of the document and its ETag
	At           time.Time
	By           string // user who activated the version
	Previous     Hash   // MAC of the previous version; zero: first of the chain
	Seal
}

// StoredResponse is the stored response to a request that moved money. The API returns the
// same response when the client repeats the request.
type StoredResponse struct {
	Route, Role, User, Key string // identify the request
	Request                Hash   // SHA-256 of the request
	Status                 int
	ContentType, Location  string
	Body                   []byte
	Expires                time.Time // zero: never
	Seal
}

func (t *Trade) buyer() Account { return Account{t.Buyer, t.Currency} }

func (t *Trade) seller() Account { return Account{t.Seller, t.Currency} }

// sealed is a record with a Seal.
type sealed interface {
	record
	seal() *Seal
}

func (s *Seal) seal() *Seal { return s }

// Seal sets the seal of a trade, a version of the fee rules or a stored response. All other
// fields must be set.
func (s *Sealer) Seal(r sealed) {
	seal := r.seal()
	seal.Version, seal.KeyID = Version, s.ring.keys[0].ID
	seal.MAC = s.sealRecord(r)
}

// Intact reports whether a trade, a version of the fee rules or a stored response matches
// its seal. It does not check the document of fee rules or the link to the previous
// version. It returns ErrNoKey if the key is missing.
func (s *Sealer) Intact(r sealed) (bool, error) {
	seal := r.seal()
	return s.intact(r, seal.Version, seal.KeyID, seal.MAC)
}

// CheckTrade returns an error if a trade does not match its seal.
func (r *Ring) CheckTrade(t *Trade) error {
	intact, err := r.Sealer().Intact(t)
	if intact && err == nil {
		return nil
	}
	return sealError(err, fmt.Sprintf("trade %d", t.ID), fault.New(fault.Damaged, "trade_tampered",
		"Trade %d was changed outside the service, so no money was moved. Verify the ledger, and restore the trade from a backup.", t.ID))
}

// CheckRules returns an error if a version of the fee rules does not match its seal. Such a
// version must not be used to compute fees.
func (r *Ring) CheckRules(v *Rules) error {
	intact, err := r.Sealer().Intact(v)
	if intact && err == nil {
		return nil
	}
	return sealError(err, fmt.Sprintf("version %d of the fee rules", v.Number), RulesTampered(v.Number))
}

// CheckResponse returns an error if a stored response does not match its seal.
func (r *Ring) CheckResponse(a *StoredResponse) error {
	intact, err := r.Sealer().Intact(a)
	if intact && err == nil {
		return nil
	}
	return sealError(err, fmt.Sprintf("the stored response of key %.255q of %.130q", a.Key, a.User), fault.New(fault.Damaged, "response_tampered",
		"The stored response of this Idempotency-Key was changed outside the service, so nothing was done. "+
			"The wallet's entries show whether money was moved under the key. Restore the response from a backup."))
}

// RulesTampered returns the fault for a version of the fee rules that was changed.
func RulesTampered(version int64) *fault.Error {
	return fault.New(fault.Damaged, "fee_rules_tampered",
		"Version %d of the fee rules was changed after its activation, so it is not used. Verify the ledger, and restore the rules from a backup.", version)
}

// sealError returns the error for a row that does not match its seal, or for a failed
// check. The error names the row for the log and wraps a fault for API clients. If err is
// not nil, the fault states that a key is missing.
func sealError(err error, what string, refusal *fault.Error) error {
	if err == nil {
		return fmt.Errorf("%w: %s: %w", ErrTampered, what, refusal)
	}
	return fmt.Errorf("%s: %w: %w", what, err, fault.New(fault.Damaged, "ledger_key_missing",
		"The ledger has rows sealed with a key that this server lacks, so it refuses to use them. Add that key to WALLET_LEDGER_KEY, after the current one, and restart."))
}
