package audit

import (
	"encoding/binary"
	"errors"
	"time"

	"assay/internal/money"
	"assay/internal/wallet"
)

// What a sorter keeps of entries and transactions are all of their fields but their
// own seals, which were verified when they were read.

func putEntry(to []byte, e *Entry) []byte {
	to = putTexts(to, e.User, string(e.Currency), string(e.Type), e.IdempotencyKey, e.FeeRule, e.KeyID)
	to = append(to, e.Posting[:]...)
	return putInts(to, e.Number, e.Transaction, e.Amount, e.Balance, e.Held, e.Trade, e.Reverses, e.FeeVersion, e.At.UnixMicro(), int64(e.Version))
}

func (r *recordReader) entry() (e Entry) {
	e.User, e.Currency, e.Type = r.word(), money.Currency(r.word()), wallet.Type(r.word())
	e.IdempotencyKey, e.FeeRule, e.KeyID, e.Posting = r.word(), r.word(), r.word(), r.hash()
	e.Number, e.Transaction = r.int(), r.int()
	e.Amount, e.Balance, e.Held, e.Trade, e.Reverses, e.FeeVersion = r.int(), r.int(), r.int(), r.int(), r.int(), r.int()
	e.At, e.Version = time.UnixMicro(r.int()).UTC(), int(r.int())
	return e
}

// putPayment keeps a transaction, or that there is none, with its entries.
func putPayment(to []byte, p *payment) []byte {
	to = putInts(to, p.id, int64(len(p.entries)))
	for i := range p.entries {
		to = putEntry(to, &p.entries[i])
	}
	t := p.Transaction
	if t == nil {
		return to
	}
	to = putTexts(to, string(t.Kind), t.Scope, t.IdempotencyKey, t.Note, t.KeyID)
	to = append(to, t.Terms[:]...)
	return putInts(to, t.Trade, t.Reverses, t.Entries, t.At.UnixMicro(), int64(t.Version))
}

func (r *recordReader) payment() *payment {
	p := &payment{id: r.int()}
	p.entries = make([]Entry, r.int())
	for i := range p.entries {
		p.entries[i] = r.entry()
	}
	if len(r.rest) == 0 {
		return p
	}
	t := wallet.Transaction{ID: p.id, Kind: wallet.Kind(r.word()), Scope: r.word(), IdempotencyKey: r.word(), Note: r.word(), KeyID: r.word(), Terms: r.hash()}
	t.Trade, t.Reverses, t.Entries, t.At, t.Version = r.int(), r.int(), r.int(), time.UnixMicro(r.int()).UTC(), int(r.int())
	p.Transaction = &Transaction{Transaction: t}
	return p
}

func putInts(to []byte, values ...int64) []byte {
	for _, v := range values {
		to = binary.AppendVarint(to, v)
	}
	return to
}

func putTexts(to []byte, texts ...string) []byte {
	for _, t := range texts {
		to = append(binary.AppendUvarint(to, uint64(len(t))), t...)
	}
	return to
}

// recordReader takes records apart. It gives a text that comes again and again the
// same memory.
type recordReader struct {
	rest  []byte
	words map[string]string
	err   error
}

var errRecord = errors.New("what was put aside of the ledger cannot be read again")

// read begins with a record.
func (r *recordReader) read(record []byte) { r.rest = record }

func (r *recordReader) int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.rest, r.err = nil, errRecord
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *recordReader) hash() (h wallet.Hash) {
	if len(r.rest) < len(h) {
		r.rest, r.err = nil, errRecord
		return h
	}
	r.rest = r.rest[copy(h[:], r.rest):]
	return h
}

const maxWords = 1 << 10

func (r *recordReader) word() string {
	size, n := binary.Uvarint(r.rest)
	if n <= 0 || size > uint64(len(r.rest)-n) {
		r.rest, r.err = nil, errRecord
		return ""
	}
	b := r.rest[n : n+int(size)]
	r.rest = r.rest[n+int(size):]
	if w, ok := r.words[string(b)]; ok {
		return w
	}
	w := string(b)
	if len(r.words) < maxWords && len(w) < 8 {
		if r.words == nil {
			r.words = map[string]string{}
		}
		r.words[w] = w
	}
	return w
}
