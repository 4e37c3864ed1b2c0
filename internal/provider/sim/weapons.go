package sim

// wears are in descending order of price. A factor is the wear's price in thousandths of
// the finish's value.
var wears = []struct {
	name   string
	factor int64
}{
	{"Factory New", 1500}, {"Minimal Wear", 1000}, {"Field-Tested", 750}, {"Well-Worn", 680}, {"Battle-Scarred", 620},
}

var weapons = []string{
	"AK-47", "AUG", "AWP", "CZ75-Auto", "Desert Eagle", "Dual Berettas", "FAMAS", "Five-SeveN", "G3SG1", "Galil AR",
	"Glock-18", "M249", "M4A1-S", "M4A4", "MAC-10", "MAG-7", "MP5-SD", "MP7", "MP9", "Negev",
	"Nova", "P2000", "P250", "P90", "PP-Bizon", "R8 Revolver", "SCAR-20", "SG 553", "SSG 08", "Sawed-Off",
	"Tec-9", "UMP-45", "USP-S", "XM1014", "Zeus x27",
}

var knives = []string{
	"Bayonet", "Bowie Knife", "Butterfly Knife", "Classic Knife", "Falchion Knife", "Flip Knife", "Gut Knife",
	"Huntsman Knife", "Karambit", "Kukri Knife", "M9 Bayonet", "Navaja Knife", "Nomad Knife", "Paracord Knife",
	"Shadow Daggers", "Skeleton Knife", "Stiletto Knife", "Survival Knife", "Talon Knife", "Ursus Knife",
}

// knifeFinishes are the finishes of every knife. Real knives share finishes too.
var knifeFinishes = []string{
	"Nebula Drift", "Verdant Nebula", "Tideline", "Oxblood", "Heat Haze", "Hill Stripe", "Lattice", "Midnight Oil", "Marbled Dusk",
	"Quarry Dust", "Raw Edge", "Smoked Lacquer", "Thornwork", "Ultraviolet Hour", "Weathered Teal", "Winter Lichen", "Woodsmoke", "Zigzag",
}

// nebulaFinishes are the finishes with phases, like Doppler. They exist only in the
// two best wears.
var nebulaFinishes = map[string]phases{"Nebula Drift": nebula, "Verdant Nebula": verdant}

var gloves = []string{
	"Broken Fang Gloves", "Bloodhound Gloves", "Driver Gloves", "Hand Wraps", "Hydra Gloves", "Moto Gloves", "Specialist Gloves", "Sport Gloves",
}

const (
	star     = "★ "
	statTrak = "StatTrak™ "
	souvenir = "Souvenir "
)

// Numbers of finishes. Multiplied by the wears, they give the proportions of the real
// catalog.
const (
	finishesPerWeapon = 41
	finishesPerGlove  = 11
)

// addWeapons adds the finishes of each weapon. 44 % of them also exist as StatTrak™ and
// 32 % as souvenirs. No finish has both variants.
func (b *builder) addWeapons() {
	for _, weapon := range weapons {
		for range finishesPerWeapon {
			name := weapon + " | " + b.freshFinish(weapon)
			rank := b.rng.below(one)
			from, to := b.wearRange()
			sort := b.rng.below(100)
			for _, w := range wears[from:to] {
				suffix := " (" + w.name + ")"
				b.add(weaponKind, name+suffix, rank, w.factor, 0)
				switch {
				case sort < 44:
					b.add(statTrakKind, statTrak+name+suffix, rank, w.factor, 0)
				case sort < 76:
					b.add(souvenirKind, souvenir+name+suffix, rank, w.factor, 0)
				}
			}
		}
	}
}

// wearRange draws the wears of a finish as a range of indices. Most finishes have all
// five wears.
func (b *builder) wearRange() (from, to int) {
	switch r := b.rng.below(100); {
	case r < 80:
		return 0, 5
	case r < 88:
		return 0, 3
	case r < 94:
		return 0, 4
	default:
		return 1, 5
	}
}

func (b *builder) addKnives() {
	for _, knife := range knives {
		tier := b.rng.below(one)
		b.add(knifeKind, star+knife, tier, 1000, 0)
		b.add(knifeKind, star+statTrak+knife, tier, 1250, 0)
		for _, finish := range knifeFinishes {
			rank := (tier + b.rng.below(one)) / 2
			phaseSet := nebulaFinishes[finish]
			from, to := b.wearRange()
			if phaseSet != 0 {
				from, to = 0, 2
			}
			for _, w := range wears[from:to] {
				suffix := knife + " | " + finish + " (" + w.name + ")"
				b.add(knifeKind, star+suffix, rank, w.factor, phaseSet)
				b.add(knifeKind, star+statTrak+suffix, rank, w.factor*5/4, phaseSet)
			}
		}
	}
}

func (b *builder) addGloves() {
	for _, glove := range gloves {
		for range finishesPerGlove {
			name := star + glove + " | " + b.freshFinish(glove)
			rank := b.rng.below(one)
			for _, w := range wears {
				b.add(gloveKind, name+" ("+w.name+")", rank, w.factor, 0)
			}
		}
	}
}

// freshFinish generates a finish that the weapon does not have yet.
func (b *builder) freshFinish(weapon string) string {
	for {
		finish := b.rng.pick(adjectives) + " " + b.rng.pick(nouns)
		if b.claim(weapon + " | " + finish) {
			return finish
		}
	}
}
