package pricing

// KeyOf returns a hash of the name and phase of an item, for Point.Key. The hash is the
// same on every machine. The probability of a collision among 100,000 names is 3 in 10
// billion. A collision affects only the validation of responses, never prices.
func KeyOf[T ~string | ~[]byte](name T, phase string) uint64 {
	h := fnvStart
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * fnvPrime
	}
	return fnv(h*fnvPrime, phase) // h*fnvPrime adds a zero byte between name and phase
}
