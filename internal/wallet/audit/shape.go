package audit

import (
	"fmt"
	"strings"

	"assay/internal/wallet"
)

// misshapen returns what is wrong with the entries of a transaction of its kind; "":
// nothing. Reversals are compared with what they take back instead.
func misshapen(p *payment) string {
	good := true
	switch p.kind() {
	case wallet.KindDeposit:
		good = p.transfer(wallet.TypeDeposit, wallet.HouseDeposit, 1)
	case wallet.KindWithdrawal:
		good = p.transfer(wallet.TypeWithdrawal, wallet.HouseWithdrawal, -1)
	case wallet.KindCorrection:
		good = p.transfer(wallet.TypeCorrection, wallet.HouseCorrection, 0)
	case wallet.KindSettlement:
		good = p.settlement()
	case wallet.KindSale:
		good = p.sale()
	case wallet.KindCompletion:
		good = p.completion()
	}
	if good {
		return ""
	}
	var b strings.Builder
	for i := range p.entries {
		if e := &p.entries[i]; i < 8 {
			fmt.Fprintf(&b, "%s of %d for %.130q; ", e.Type, e.Amount, e.User)
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// transfer reports whether the entries move money between a user and the house:
// to the user where sign is 1, from the user where it is -1, either way where it
// is 0.
func (p *payment) transfer(kind wallet.Type, house string, sign int64) bool {
	if len(p.entries) != 2 {
		return false
	}
	user, other := &p.entries[0], &p.entries[1]
	if wallet.IsHouse(user.User) {
		user, other = other, user
	}
	return user.Type == kind && other.Type == kind && !wallet.IsHouse(user.User) && wallet.HouseName(other.User) == house && wallet.IsHouse(other.User) &&
		user.Amount == -other.Amount && user.Amount != 0 && user.Amount*sign >= 0
}

// settlement reports whether one entry frees what another one releases in the same
// account of a user.
func (p *payment) settlement() bool {
	released, freed := p.leg(wallet.TypeRelease), p.leg(wallet.TypeFree)
	return len(p.entries) == 2 && released != nil && freed != nil && released.Account == freed.Account && !wallet.IsHouse(freed.User) &&
		released.Amount == -freed.Amount && freed.Amount >= 0
}

// completion reports whether there is an entry of nothing for each of two users.
func (p *payment) completion() bool {
	if len(p.entries) != 2 || p.entries[0].User == p.entries[1].User {
		return false
	}
	for i := range p.entries {
		if e := &p.entries[i]; e.Type != wallet.TypeCompletion || e.Amount != 0 || wallet.IsHouse(e.User) {
			return false
		}
	}
	return true
}

// sale reports whether the entries are those of a sale.
func (p *payment) sale() bool {
	paid, got, feeEntry := p.leg(wallet.TypePurchase), p.leg(wallet.TypeSale), p.leg(wallet.TypeFee)
	if len(p.entries) != 3 || paid == nil || got == nil || feeEntry == nil || paid.Amount >= 0 || got.Amount < 0 || feeEntry.Amount < 0 {
		return false
	}
	if wallet.IsHouse(paid.User) || wallet.IsHouse(got.User) || paid.User == got.User || !wallet.IsHouse(feeEntry.User) || wallet.HouseName(feeEntry.User) != wallet.HouseFee {
		return false
	}
	for _, e := range []*Entry{got, feeEntry} {
		if e.FeeRule != paid.FeeRule || e.FeeVersion != paid.FeeVersion {
			return false
		}
	}
	return true
}
