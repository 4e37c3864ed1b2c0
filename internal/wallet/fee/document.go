package fee

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"assay/internal/money"
)

// Document is the JSON form of a set, as Decode reads it. The rules are in the order of
// their evaluation, the values of conditions are sorted, and defaults are filled in.
// Documents with the same meaning therefore have the same form.
type Document struct {
	Rules    []RuleDocument   `json:"rules"`
	Fallback FallbackDocument `json:"fallback"`
}

// RuleDocument is the JSON form of a rule.
type RuleDocument struct {
	ID             string             `json:"id"`
	Priority       int64              `json:"priority"`
	Conditions     *ConditionDocument `json:"conditions,omitempty"`
	BasisPoints    *int64             `json:"basisPoints,omitempty"`
	Fixed          int64              `json:"fixed,omitzero"`
	Minimum        int64              `json:"minimum,omitzero"`
	Maximum        *int64             `json:"maximum,omitempty"`
	Tiers          []TierDocument     `json:"tiers,omitempty"`
	Basis          Basis              `json:"basis"`
	Rounding       Rounding           `json:"rounding"`
	EffectiveFrom  *time.Time         `json:"effectiveFrom,omitempty"`
	EffectiveUntil *time.Time         `json:"effectiveUntil,omitempty"`
}

// ConditionDocument is the JSON form of the conditions of a rule.
type ConditionDocument struct {
	Kind          []Kind           `json:"kind,omitempty"`
	PaymentMethod []string         `json:"paymentMethod,omitempty"`
	Currency      []money.Currency `json:"currency,omitempty"`
	Country       []string         `json:"country,omitempty"`
	Amount        *SpanDocument    `json:"amount,omitempty"`
}

// SpanDocument is the JSON form of a range of amounts.
type SpanDocument struct {
	From  int64 `json:"from"`
	Below int64 `json:"below,omitzero"`
}

// TierDocument is the JSON form of a tier.
type TierDocument struct {
	SpanDocument
	BasisPoints int64 `json:"basisPoints"`
	Fixed       int64 `json:"fixed,omitzero"`
}

// FallbackDocument is the JSON form of the fallback, which applies if no rule matches.
type FallbackDocument struct {
	BasisPoints int64    `json:"basisPoints"`
	Basis       Basis    `json:"basis"`
	Rounding    Rounding `json:"rounding"`
}

// Document returns the JSON form of the set.
func (s *Set) Document() Document {
	f := &s.Fallback
	d := Document{
		Rules:    make([]RuleDocument, len(s.Rules)),
		Fallback: FallbackDocument{BasisPoints: f.Tiers[0].BasisPoints, Basis: f.Basis, Rounding: f.Rounding},
	}
	for i := range s.Rules {
		d.Rules[i] = s.Rules[i].document()
	}
	return d
}

func (r *Rule) document() RuleDocument {
	d := RuleDocument{
		ID: r.ID, Priority: r.Priority, Conditions: r.conditions(), Minimum: r.Minimum, Maximum: r.Maximum,
		Basis: r.Basis, Rounding: r.Rounding, EffectiveFrom: orNil(r.From), EffectiveUntil: orNil(r.Until),
	}
	if len(r.Tiers) == 1 {
		d.BasisPoints, d.Fixed = &r.Tiers[0].BasisPoints, r.Tiers[0].Fixed
		return d
	}
	for _, t := range r.Tiers {
		d.Tiers = append(d.Tiers, TierDocument{SpanDocument(t.Span), t.BasisPoints, t.Fixed})
	}
	return d
}

func (r *Rule) conditions() *ConditionDocument {
	c := ConditionDocument{Kind: r.Kinds, PaymentMethod: r.Methods, Currency: r.Currencies, Country: r.Countries}
	if r.Amount != (Span{}) {
		c.Amount = (*SpanDocument)(&r.Amount)
	} else if len(c.Kind)+len(c.PaymentMethod)+len(c.Currency)+len(c.Country) == 0 {
		return nil
	}
	return &c
}

// String returns the conditions in words.
func (c *ConditionDocument) String() string {
	if c == nil {
		return "all"
	}
	r := Rule{Kinds: c.Kind, Methods: c.PaymentMethod, Currencies: c.Currency, Countries: c.Country}
	if c.Amount != nil {
		r.Amount = Span(*c.Amount)
	}
	return r.why()
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Canonical returns the canonical text of the set and its digest. Documents with the same
// meaning have the same canonical text.
func (s *Set) Canonical() (text []byte, digest string, err error) {
	if text, err = json.Marshal(s.Document()); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), nil
}
