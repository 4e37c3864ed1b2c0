package pricing

import "strings"

// Class is a group of names whose prices move together. A fall of a whole class
// excuses the moves of its names (steps 5 and 11).
type Class uint8

// The classes.
const (
	Rest Class = iota
	Star       // knives and gloves: names that begin with ★
	classes
)

// String returns "rest" or "star".
func (c Class) String() string {
	if c == Star {
		return "star"
	}
	return "rest"
}

// Traits is what the name of an item reveals. It is a plain value that can be
// compared.
type Traits struct {
	Class Class
	Wear  uint8 // 1 (Factory New) to 5 (Battle-Scarred); 0: none
	// Skin is a hash, equal for the wears of one skin; 0 without a wear. Of 10,000 skins
	// two collide with a probability of 1 %, which does not change a median over all skins.
	Skin uint32
}

// TraitsOf reads the traits of a market hash name.
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

// Start and prime of the FNV-1a hash of 64 bits.
const (
	fnvStart uint64 = 14695981039346656037
	fnvPrime uint64 = 1099511628211
)

// fnv continues the FNV-1a hash of 64 bits over text.
func fnv(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}
