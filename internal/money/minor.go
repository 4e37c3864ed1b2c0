package money

// FromMinor returns an amount of minor units, of at most 10^12, in micro-units.
func (c Currency) FromMinor(amount int64) Micro {
	scale := int64(Scale)
	for range c.MinorDigits() {
		scale /= 10
	}
	return Micro(amount * scale)
}
