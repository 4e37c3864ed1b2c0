package pricing

// KeyOf returns the key of an item of a game (Point.Key): a hash of its name and
// phase that is the same on every machine. Of 100,000 names two collide with a
// probability of 3 in 10 billion, and then only their votes on a whole response
// are mixed up, never their prices.
func KeyOf[T ~string | ~[]byte](name T, phase string) uint64 {
	h := fnvStart
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * fnvPrime
	}
	return fnv(h*fnvPrime, phase) // as if a zero byte stood between the two
}
