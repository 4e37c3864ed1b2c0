package pricing

import (
	"cmp"
	"slices"

	"assay/internal/money"
)

// Voter is a market's answer, numbered by whoever calls.
type Voter int

// Vote is what a voter asks for a name, in the base currency.
type Vote struct {
	Voter Voter
	Price money.Micro
}

// Ballot is what is said of one name.
type Ballot struct {
	Votes   []Vote      // of each voter at most one
	Known   money.Micro // stored median of the markets; 0: none
	Markets int         // on how many markets Known rests
}

// Panel holds first answers against what the other markets say (step 7). No
// market is right because another disagrees with it: of each name the majority
// decides, and where there is none nobody does. So a majority of markets that
// agree is never refused for what the others say, however far off these are and
// in whatever order they come. It is for one goroutine.
type Panel struct {
	// Former are voters that Known rests on already: where they vote, it only
	// counts for the markets that do not.
	Former map[Voter]bool

	ballots []Ballot
	scratch []weighed
}

// weighed is a price and how many markets say so.
type weighed struct {
	price  money.Micro
	weight int
}

// Add takes what is said of one name, and keeps it. Prices that are not valid do
// not count.
func (p *Panel) Add(b Ballot) {
	b.Votes = slices.DeleteFunc(b.Votes, func(v Vote) bool { return v.Price <= 0 || v.Price > maxPrice })
	p.ballots = append(p.ballots, b)
}

// Finding is what a Panel found of a first answer.
type Finding struct {
	Diagnosis
	Rivals []Voter // of a disputed answer: who disagrees, ascending
}

// Judge returns what is wrong with the accused; who is not in the answer is
// healthy. Answers in mute are not heard. Those that are convicted are not heard
// any more either, the most contradicted first. An operator may have vouched for
// one: then it stays, and is heard.
func (p *Panel) Judge(accused []Voter, mute map[Voter]bool, vouched func(Voter, Diagnosis) bool) map[Voter]Finding {
	out, free, silent := map[Voter]Finding{}, map[Voter]bool{}, map[Voter]bool{}
	for v := range mute {
		silent[v] = mute[v]
	}
	for {
		cases := p.hear(accused, silent)
		most := 0
		for v, c := range cases {
			if c.finding = c.decide(); c.finding.Sick() && vouched(v, c.finding.Diagnosis) {
				free[v] = true
			}
			if c.finding.Illness == Skewed && !free[v] {
				most = max(most, c.against)
			}
		}
		for v, c := range cases {
			switch {
			case free[v]:
			case c.finding.Illness == Skewed && c.against == most:
				out[v], silent[v] = c.finding, true
			case c.finding.Illness == Contested && most == 0:
				out[v] = c.finding
			}
		}
		if most == 0 {
			return out
		}
	}
}

// trial is what is said about one of the accused.
type trial struct {
	agreed   Checkup // against what most markets say
	disputed Checkup // against those who disagree, where no majority does
	against  int     // names for which most markets say otherwise
	rivals   map[Voter]int
	finding  Finding
}

// hear counts the votes of all ballots.
func (p *Panel) hear(accused []Voter, silent map[Voter]bool) map[Voter]*trial {
	cases := map[Voter]*trial{}
	for _, v := range accused {
		if !silent[v] {
			cases[v] = &trial{rivals: map[Voter]int{}}
		}
	}
	for i := range p.ballots {
		b := &p.ballots[i]
		level, majority, ok := p.count(b, silent)
		if !ok {
			continue
		}
		for _, vote := range b.Votes {
			c := cases[vote.Voter]
			switch {
			case c == nil:
			case !majority:
				c.dispute(b, vote, silent)
			default:
				c.agreed.Add(level, vote.Price)
				if !near(vote.Price, level) {
					c.against++
				}
			}
		}
	}
	return cases
}

// count returns the price that most markets are near to, if there is one. It is
// not ok where fewer than two speak.
func (p *Panel) count(b *Ballot, silent map[Voter]bool) (level money.Micro, majority, ok bool) {
	votes, rest, total := p.scratch[:0], b.Markets, 0
	for _, v := range b.Votes {
		if silent[v.Voter] {
			continue
		}
		votes = append(votes, weighed{v.Price, 1})
		if p.Former[v.Voter] {
			rest--
		}
	}
	if b.Known > 0 && rest > 0 {
		votes = append(votes, weighed{b.Known, rest})
	}
	p.scratch = votes
	if len(votes) < 2 {
		return 0, false, false
	}
	slices.SortFunc(votes, func(a, b weighed) int { return cmp.Compare(a.price, b.price) })
	for _, v := range votes {
		total += v.weight
	}
	low, high := middle(votes, total-1), middle(votes, total)
	if !near(high, low) {
		return 0, false, true
	}
	level = median([]money.Micro{low, high})
	agree := 0
	for _, v := range votes {
		if near(v.price, level) {
			agree += v.weight
		}
	}
	return level, 2*agree > total, true
}

// middle returns the first price at which more than half of n weights are
// reached.
func middle(sorted []weighed, n int) money.Micro {
	sum := 0
	for _, v := range sorted {
		if sum += v.weight; 2*sum > n {
			return v.price
		}
	}
	return 0
}

// near reports whether none of two prices is more than ten times the other.
func near(a, b money.Micro) bool {
	const most = othersHigh / money.Scale
	return (max(a, b)-1)/most < min(a, b)
}

// dispute notes a name of which no majority says anything.
func (c *trial) dispute(b *Ballot, vote Vote, silent map[Voter]bool) {
	var others []money.Micro
	for _, o := range b.Votes {
		if !silent[o.Voter] && !near(o.Price, vote.Price) {
			others = append(others, o.Price)
			c.rivals[o.Voter]++
		}
	}
	if len(others) == 0 {
		others = append(others, b.Known)
	}
	slices.Sort(others)
	c.disputed.Add(median(others), vote.Price)
}

// decide tells the answer's illness. Names of which a majority speaks decide
// where there are enough of them, and else all.
func (c *trial) decide() Finding {
	d := c.agreed.AgainstOthers()
	all := len(c.agreed.ratios) + len(c.disputed.ratios)
	bad := c.against + len(c.disputed.ratios)
	if d.Shared >= fewestShared || all < fewestShared || 2*bad <= all {
		return Finding{Diagnosis: d}
	}
	if len(c.disputed.ratios) > 0 {
		d = c.disputed.diagnose()
	}
	d.Illness = Contested
	v := Finding{Diagnosis: d}
	for rival, names := range c.rivals {
		if 2*names > len(c.disputed.ratios) {
			v.Rivals = append(v.Rivals, rival)
		}
	}
	slices.Sort(v.Rivals)
	return v
}
