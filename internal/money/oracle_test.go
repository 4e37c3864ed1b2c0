package money

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// halfEven rounds r half to even. ok is false if the magnitude of the result exceeds
// math.MaxInt64.
func halfEven(r *big.Rat) (m Micro, ok bool) {
	abs := new(big.Rat).Abs(r)
	q, rest := new(big.Int).QuoRem(abs.Num(), abs.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1)
	if c := twice.Cmp(abs.Denom()); c > 0 || (c == 0 && q.Bit(0) == 1) {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return 0, false
	}
	if r.Sign() < 0 {
		q.Neg(q)
	}
	return Micro(q.Int64()), true
}

// rat returns the exact value of text / unit * Scale.
func rat(t testing.TB, text string, unit int64) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("big.Rat cannot parse %q", text)
	}
	return r.Mul(r, big.NewRat(Scale, unit))
}

// anyMicro returns a Micro of random size and sign.
func anyMicro(r *rand.Rand) Micro {
	m := Micro(r.Uint64() >> (1 + r.IntN(63)))
	if r.IntN(8) == 0 {
		m = math.MaxInt64 - Micro(r.IntN(3))
	}
	if r.IntN(2) == 0 {
		return -m
	}
	return m
}
