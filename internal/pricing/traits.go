package pricing

import "strings"

// Class is a group of names with prices that often move together. Checks compare the move
// of a name with the move of its class (steps 5 and 11).
type Class uint8

// The classes.
const (
	Rest Class = iota
	Star       // knives and gloves; their names begin with ★
	classes
)

// String returns "rest" or "star".
func (c Class) String() string {
	if c == Star {
		return "star"
	}
	return "rest"
}

// Traits contains properties of an item that its name shows.
type Traits struct {
	Class Class
	Wear  uint8 // 1 (Factory New) to 5 (Battle-Scarred); 0: none
	// Skin is a hash of the name without the wear, or 0 for a name without a wear. The
	// probability of a collision among 10,000 skins is 1 %. A collision has no effect on
	// the median over all skins.
	Skin uint32
}

// TraitsOf returns the traits of a market hash name.
func TraitsOf(name string) Traits {
	t := Traits{Class: ClassOf(name)}
	at := strings.LastIndex(name, " (")
	if at <= 0 {
		return t
	}
	switch name[at+1:] {
	case "(Factory New)":
		t.Wear = 1
	case "(Minimal Wear)":
		t.Wear = 2
	case "(Field-Tested)":
		t.Wear = 3
	case "(Well-Worn)":
		t.Wear = 4
	case "(Battle-Scarred)":
		t.Wear = 5
	default:
		return t
	}
	t.Skin = max(1, uint32(fnv(fnvStart, name[:at])>>32))
	return t
}

// ClassOf returns the class of a market hash name.
func ClassOf(name string) Class {
	if strings.HasPrefix(name, "★") {
		return Star
	}
	return Rest
}

// Parameters of the 64-bit FNV-1a hash.
const (
	fnvStart uint64 = 14695981039346656037
	fnvPrime uint64 = 1099511628211
)

// fnv adds text to the 64-bit FNV-1a hash h.
func fnv(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}
