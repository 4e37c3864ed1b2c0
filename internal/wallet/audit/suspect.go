package audit

import "assay/internal/wallet"

// suspects are the transactions that are not what their entries cover, or whose trade
// is not what they cover, by the accounts of the entries. Where a checkpoint covers such
// an entry, the transaction or trade was changed after the checkpoint was made,
// whichever key sealed it again.
type suspects struct {
	entries map[wallet.Account][]suspect
	count   int
}

type suspect struct {
	number int64 // of the entry
	*contradiction
}

type contradiction struct {
	finding  Finding
	reported bool
}

// maxSuspects bounds how many are compared with a checkpoint. Each of them fails
// another check already.
const maxSuspects = 1000

func (v *audit) suspect(p *payment, f Finding) {
	s := &v.suspects
	if s.count == maxSuspects {
		return
	}
	if s.entries == nil {
		s.entries = map[wallet.Account][]suspect{}
	}
	s.count++
	c := &contradiction{finding: f}
	for i := range p.entries {
		e := &p.entries[i]
		s.entries[e.Account] = append(s.entries[e.Account], suspect{e.Number, c})
	}
}

// covered fails the suspects that a mark of a checkpoint covers, each once.
func (v *audit) covered(m wallet.Mark) {
	for _, s := range v.suspects.entries[m.Account] {
		if s.reported || s.number > m.Number {
			continue
		}
		s.reported = true
		f := s.finding
		f.Message = "Changed since the checkpoint, which covers it. " + f.Message
		v.fail(anchorMatch, f)
	}
}
