package wallet

import (
	"encoding/binary"
	"time"
)

// Version is the version of the canonical bytes. Increment it with every change of their
// format. Existing seals then remain valid only if Sealer also verifies the previous
// versions.
const Version = 1

// The canonical bytes of each kind of record begin with a different domain. A seal of one
// kind of record is therefore never valid for another kind.
const (
	entryDomain          = "wallet-entry/v1\x00"
	headDomain           = "wallet-head/v1\x00"
	transactionDomain    = "wallet-transaction/v1\x00"
	checkpointDomain     = "wallet-checkpoint/v1\x00"
	keyDomain            = "wallet-key/v1\x00"
	userCheckpointDomain = "wallet-user-checkpoint/v1\x00"
	tradeDomain          = "wallet-trade/v1\x00"
	termsDomain          = "wallet-trade-terms/v1\x00"
	rulesDomain          = "wallet-fee-rules/v1\x00"
	responseDomain       = "wallet-response/v1\x00"
)

// record is a row that has canonical bytes.
type record interface {
	// frame returns the record's domain. before is the previous hash of a chain, or nil.
	frame() (domain string, before []byte)
	// fields writes the record's fields. Their order must never change.
	fields(f *fieldWriter)
}

// canonical appends the canonical bytes of a record: the domain, the previous hash and the
// fields. Each field is preceded by its length in four bytes, big-endian. The lengths
// prevent collisions: joined with a separator, "A|B", "C" and "A", "B|C" are equal.
func canonical(to []byte, r record) []byte {
	domain, before := r.frame()
	to = append(append(to, domain...), before...)
	f := fieldWriter{to}
	r.fields(&f)
	return f.bytes
}

// fieldWriter appends length-prefixed fields.
type fieldWriter struct{ bytes []byte }

func (f *fieldWriter) text(values ...string) {
	for _, v := range values {
		f.bytes = binary.BigEndian.AppendUint32(f.bytes, uint32(len(v)))
		f.bytes = append(f.bytes, v...)
	}
}

func (f *fieldWriter) int(values ...int64) {
	for _, v := range values {
		f.bytes = binary.BigEndian.AppendUint32(f.bytes, 8)
		f.bytes = binary.BigEndian.AppendUint64(f.bytes, uint64(v))
	}
}

// version writes a one-byte field.
func (f *fieldWriter) version(v int) { f.bytes = append(f.bytes, 0, 0, 0, 1, byte(v)) }

func (f *fieldWriter) time(t time.Time) { f.int(t.UnixMicro()) }

// moments writes times. It writes a zero time as 0.
func (f *fieldWriter) moments(times ...time.Time) {
	for _, t := range times {
		if t.IsZero() {
			f.int(0)
		} else {
			f.time(t)
		}
	}
}

func (f *fieldWriter) hash(h Hash) {
	f.bytes = binary.BigEndian.AppendUint32(f.bytes, uint32(len(h)))
	f.bytes = append(f.bytes, h[:]...)
}

func (e *Entry) frame() (domain string, before []byte) { return entryDomain, e.Previous[:] }

func (e *Entry) fields(f *fieldWriter) {
	f.version(e.Version)
	f.text(e.User, string(e.Currency))
	f.int(e.Number, e.Transaction)
	f.text(string(e.Type))
	f.int(e.Amount, e.Balance, e.Held, e.Trade, e.Reverses)
	f.text(e.IdempotencyKey, e.FeeRule)
	f.int(e.FeeVersion)
	f.time(e.At)
	f.hash(e.Posting)
	f.text(e.KeyID)
}

func (h *Head) frame() (domain string, before []byte) { return headDomain, nil }

func (h *Head) fields(f *fieldWriter) {
	f.version(h.Version)
	f.text(h.User, string(h.Currency))
	f.int(h.Balance, h.Held, h.Number)
	f.hash(h.Hash)
	f.text(h.KeyID)
}

func (t *Transaction) frame() (domain string, before []byte) { return transactionDomain, nil }

func (t *Transaction) fields(f *fieldWriter) {
	f.version(t.Version)
	f.int(t.ID)
	f.text(string(t.Kind))
	f.int(t.Trade, t.Reverses)
	f.text(t.Scope, t.IdempotencyKey, t.Note)
	f.int(t.Entries)
	f.time(t.At)
	f.hash(t.Terms)
	f.text(t.KeyID)
}

func (t *Trade) frame() (domain string, before []byte) { return tradeDomain, nil }

func (t *Trade) fields(f *fieldWriter) {
	f.version(t.Version)
	f.int(t.ID, t.Listing)
	f.text(t.Seller, t.Buyer)
	f.int(t.AppID)
	f.text(t.ContextID, t.AssetID)
	f.int(t.Item, t.Amount, t.Price)
	f.text(string(t.Currency), t.PaymentMethod, t.Country)
	f.int(t.Fee, t.Net)
	f.text(t.FeeRule)
	f.int(t.FeeVersion, t.Transaction)
	f.text(t.State)
	f.moments(t.CreatedAt, t.CompletedAt, t.SettleAt, t.SettledAt, t.ReversedAt)
	f.int(t.Volume, t.Ranked)
	f.text(t.KeyID)
}

func (t *terms) frame() (domain string, before []byte) { return termsDomain, nil }

func (t *terms) fields(f *fieldWriter) {
	f.int(t.ID, t.Listing)
	f.text(t.Seller, t.Buyer)
	f.int(t.AppID)
	f.text(t.ContextID, t.AssetID)
	f.int(t.Item, t.Amount, t.Price)
	f.text(string(t.Currency), t.PaymentMethod, t.Country)
	f.int(t.Fee, t.Net)
	f.text(t.FeeRule)
	f.int(t.FeeVersion)
	f.moments(t.CreatedAt, t.CompletedAt, t.SettleAt, t.SettledAt, t.ReversedAt)
	f.int(t.Volume, t.Ranked)
}

func (r *Rules) frame() (domain string, before []byte) { return rulesDomain, r.Previous[:] }

func (r *Rules) fields(f *fieldWriter) {
	f.version(r.Version)
	f.int(r.Number)
	f.text(r.Digest, r.Source, r.Mark)
	f.time(r.At)
	f.text(r.By, r.KeyID)
}

func (a *StoredResponse) frame() (domain string, before []byte) { return responseDomain, nil }

func (a *StoredResponse) fields(f *fieldWriter) {
	f.version(a.Version)
	f.text(a.Route, a.Role, a.User, a.Key)
	f.hash(a.Request)
	f.int(int64(a.Status))
	f.text(a.ContentType, a.Location, string(a.Body))
	f.moments(a.Expires)
	f.text(a.KeyID)
}
