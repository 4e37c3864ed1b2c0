package view

import (
	"time"

	"assay/internal/wallet/fee"
)

// FeeChange is the result of a refresh or a rollback of the fee rules.
type FeeChange struct {
	Version         int64    `json:"version"`
	PreviousVersion int64    `json:"previousVersion"`
	Changed         bool     `json:"changed"`
	DryRun          bool     `json:"dryRun"`
	Added           []string `json:"added"`
	Removed         []string `json:"removed"`
	Modified        []string `json:"modified"`
	LargeChanges    []string `json:"largeChanges"`
}

// FeeVersion is one activation of fee rules.
type FeeVersion struct {
	Version     int64     `json:"version"`
	Digest      string    `json:"digest"`
	Source      string    `json:"source"`
	ActivatedAt time.Time `json:"activatedAt"`
	ActivatedBy string    `json:"activatedBy"`
}

// FeeRules is a version of the fee rules, with a list of versions.
type FeeRules struct {
	FeeVersion
	Rules    fee.Document `json:"rules"`
	Versions []FeeVersion `json:"versions"`
}

// FeeVersionOf converts an activation to the type that the API returns.
func FeeVersionOf(a *fee.Activation) FeeVersion {
	return FeeVersion{Version: a.Version, Digest: a.Digest, Source: a.Source, ActivatedAt: a.At, ActivatedBy: a.By}
}

// FeeQuote is the fee of a payment and its calculation steps.
type FeeQuote struct {
	Version        int64         `json:"version"`
	Rule           string        `json:"rule"`
	Amount         int64         `json:"amount"`
	Fee            int64         `json:"fee"`
	Net            int64         `json:"net"`
	Currency       string        `json:"currency"`
	Steps          []string      `json:"steps"`
	NotMatched     []FeeMismatch `json:"notMatched"`
	MoreNotMatched int           `json:"moreNotMatched"`
}

// FeeMismatch is a rule that does not match a payment, and the reason.
type FeeMismatch struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}
