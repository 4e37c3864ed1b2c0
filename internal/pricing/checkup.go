package pricing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay/internal/money"
)

// Illness says why an answer is not to be believed as a whole; it is shown to
// operators.
type Illness string

// The illnesses.
const (
	Healthy Illness = ""
	Shrunk  Illness = "shrunk" // less than half of the names that it had
	Skewed  Illness = "ratio"  // cents for dollars, another currency
	// Unpriced is an answer with its names and less than half of its prices: all else
	// would be believed after it, since there is nothing to compare with.
	Unpriced Illness = "unpriced"
	// Contested is a first answer that others contradict, where no majority tells
	// who is right.
	Contested Illness = "contested"
)

// The ratios that a healthy answer's median stays within, in millionths: to its
// own last answer, and to the other markets' medians.
const (
	ownLow, ownHigh       = money.Scale / 2, money.Scale * 2
	othersLow, othersHigh = money.Scale / 10, money.Scale * 10

	// fewestShared is how many names a first answer must share with other
	// markets before their ratio means anything, and how many prices an answer
	// must have had before their number does.
	fewestShared = 100
)

// Checkup compares the answer of one market's file with what was known before,
// to find a sick source (step 7). The zero value is ready. It keeps 8 bytes per
// name added, which is exact and for the names of a whole game (40,000) 320 kB.
// It is for one goroutine.
type Checkup struct {
	ratios   []money.Micro // in millionths
	had, has int           // prices, before and now
}

// Add takes the prices of one name that both sides have, in the same currency:
// the reference (the market's own last price, or the median of the other
// markets) and the new price. A name without one of them does not count.
func (c *Checkup) Add(reference, price money.Micro) {
	if reference <= 0 || price <= 0 {
		return
	}
	ratio, ok := money.Ratio(price, reference)
	if !ok {
		ratio = math.MaxInt64 / 2 // far beyond any bound; two of them can still be added
	}
	c.ratios = append(c.ratios, ratio)
}

// Count takes how many prices some names had in the last answer, and how many the
// same part of this one has.
func (c *Checkup) Count(had, has int) { c.had, c.has = c.had+had, c.has+has }

// AgainstOwn judges an answer of so many names whose market gave an answer of
// before names last time; the references are that answer's prices. A market-wide
// fall as that of October 2025 (to 0.59) is healthy.
func (c *Checkup) AgainstOwn(before, names int) Diagnosis {
	d := c.diagnose()
	d.Before, d.Names, d.Had, d.Has = before, names, c.had, c.has
	switch {
	case 2*names < before:
		d.Illness = Shrunk
	case c.had >= fewestShared && 2*c.has < c.had:
		d.Illness = Unpriced
	case d.Shared > 0 && (d.Ratio < ownLow || d.Ratio > ownHigh):
		d.Illness = Skewed
	}
	return d
}

// AgainstOthers judges a market's first answer; the references are the other
// markets' medians. With fewer than 100 shared names it is healthy.
func (c *Checkup) AgainstOthers() Diagnosis {
	d := c.diagnose()
	if d.Shared >= fewestShared && (d.Ratio < othersLow || d.Ratio > othersHigh) {
		d.Illness = Skewed
	}
	return d
}

// Refused is an answer that was quarantined, and that an operator vouched for.
type Refused struct {
	Names int
	Ratio money.Micro // of its Diagnosis
}

// Covers reports whether an answer of so many names is about the one that was
// refused, so that what was said of the one holds for the other: its size and
// level are held against that by the bounds of AgainstOwn.
func (r Refused) Covers(names int, d Diagnosis) bool {
	if 2*names < r.Names || names > 2*r.Names {
		return false
	}
	if d.Shared == 0 {
		return true
	}
	level, ok := money.Ratio(d.Ratio, cmp.Or(r.Ratio, money.Scale))
	return ok && level >= ownLow && level <= ownHigh
}

func (c *Checkup) diagnose() Diagnosis {
	if len(c.ratios) == 0 {
		return Diagnosis{}
	}
	slices.Sort(c.ratios)
	return Diagnosis{Shared: len(c.ratios), Ratio: median(c.ratios)}
}

// Diagnosis is what a Checkup found.
type Diagnosis struct {
	Illness Illness
	Before  int         // names in the last answer; 0 where there was none
	Names   int         // names in this one, where Before was given
	Had     int         // prices in as much of the last answer as was compared
	Has     int         // and in this one
	Shared  int         // names whose prices were compared
	Ratio   money.Micro // median of new to reference price, in millionths; nothing where Shared is 0
	Rivals  string      // of a contested answer: who disagrees, as operators call them
}

// Sick reports whether the answer must be quarantined.
func (d Diagnosis) Sick() bool { return d.Illness != Healthy }

// String says in one line, for operators, what is wrong; it is empty for a
// healthy answer.
func (d Diagnosis) String() string {
	switch d.Illness {
	case Shrunk:
		return fmt.Sprintf("%d names, of %d before", d.Names, d.Before)
	case Unpriced:
		return fmt.Sprintf("%d prices, of %d before", d.Has, d.Had)
	case Skewed:
		return fmt.Sprintf("prices are %s times what they should be, at the median of %d names", d.Ratio, d.Shared)
	case Contested:
		return fmt.Sprintf("prices are %s times those of %s, at the median of %d names, and no majority tells which is right: accept the right one",
			d.Ratio, cmp.Or(d.Rivals, "what was known"), d.Shared)
	default:
		return ""
	}
}
