package money

// FromMinor converts an amount from minor units to micro-units. The amount must be at
// most 10^12 minor units.
func (c Currency) FromMinor(amount int64) Micro {
	scale := int64(Scale)
	for range c.MinorDigits() {
		scale /= 10
	}
	return Micro(amount * scale)
}
