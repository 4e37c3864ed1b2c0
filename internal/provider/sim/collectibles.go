package sim

import (
	"slices"
	"strconv"
	"strings"
)

// Numbers of collectibles by category. They have the proportions of the real catalog.
const (
	events         = 17
	loneStickers   = 280
	slabs          = 7515
	graffitiMotifs = 94
	plainGraffiti  = 20
	highlights     = 900
	cases          = 60
	musicKits      = 92
	agents         = 64
	charms         = 78
	pins           = 45
	playersPerTeam = 5
)

// Editions of an event's stickers. From 2020, glitter replaces foil.
var (
	oldEditions = []edition{{"", 350}, {" (Holo)", 1200}, {" (Foil)", 900}, {" (Gold)", 3000}}
	newEditions = []edition{{"", 250}, {" (Glitter)", 400}, {" (Holo)", 800}, {" (Gold)", 2200}}
)

type edition struct {
	suffix string
	factor int64 // price in thousandths of the sticker's value
}

// event is a tournament.
type event struct {
	name string // "Norhaven 2019"
	year int
}

// addEvents adds the stickers, capsules and packages of each event. It adds slabs of the
// latest stickers, and highlights of the last three events.
func (b *builder) addEvents() {
	roster := b.roster()
	var all []event
	for i := range events {
		year := 2014 + i*12/(events-1)
		all = append(all, event{name: places[i%len(places)] + " " + strconv.Itoa(year), year: year})
	}
	slabsLeft := slabs
	for _, e := range slices.Backward(all) { // newest first, because slabs hold the latest stickers
		slabsLeft = b.addStickers(e, roster, slabsLeft)
		b.addCapsules(e)
		b.transfer(roster)
	}
	b.addHighlights(all[len(all)-3:], roster)
}

// addStickers adds the stickers of one event's teams and players. It also adds up to
// slabsLeft slabs of these stickers and returns the number of slabs that remain.
func (b *builder) addStickers(e event, roster [][]string, slabsLeft int) int {
	editions := newEditions
	if e.year < 2020 {
		editions = oldEditions
	}
	for t, team := range teams {
		for _, who := range append([]string{team}, roster[t]...) {
			rank := b.rng.below(one)
			for _, ed := range editions {
				name := who + ed.suffix + " | " + e.name
				b.add(stickerKind, "Sticker | "+name, rank, ed.factor, 0)
				if slabsLeft > 0 {
					b.add(slabKind, "Sticker Slab | "+name, rank, ed.factor, 0)
					slabsLeft--
				}
			}
		}
	}
	return slabsLeft
}

func (b *builder) addCapsules(e event) {
	for _, team := range teams {
		if b.rng.below(100) < 45 {
			b.add(containerKind, "Autograph Capsule | "+team+" | "+e.name, b.rng.below(one), 1000, 0)
		}
	}
	for _, group := range []string{"Legends", "Challengers", "Contenders"} {
		b.add(containerKind, e.name+" "+group+" Sticker Capsule", b.rng.below(one), 600, 0)
	}
	for _, m := range arenas {
		b.add(containerKind, e.name+" "+m+" Souvenir Package", b.rng.below(one), 1500, 0)
	}
}

func (b *builder) addHighlights(recent []event, roster [][]string) {
	moves := []string{"Triple on", "Clutch on", "Ace on", "No-scope on", "Last Stand on", "Double Entry on", "Ninja Defuse on", "Wallbang on"}
	for made := 0; made < highlights; {
		e := recent[b.rng.below(len(recent))]
		player := b.rng.pick(roster[b.rng.below(len(roster))])
		name := "Souvenir Charm | " + e.name + " Highlight | " + player + " " + b.rng.pick(moves) + " " + b.rng.pick(arenas)
		if b.claim(name) {
			b.add(highlightKind, name, b.rng.below(one), 1000, 0)
			made++
		}
	}
}

// roster generates the players of each team.
func (b *builder) roster() [][]string {
	roster := make([][]string, len(teams))
	for t := range roster {
		for range playersPerTeam {
			roster[t] = append(roster[t], b.handle())
		}
	}
	return roster
}

// transfer replaces one player of each team. Real teams also change between events.
func (b *builder) transfer(roster [][]string) {
	for t := range roster {
		roster[t][b.rng.below(playersPerTeam)] = b.handle()
	}
}

// handle generates a unique player name. Two generated names never differ only in case:
// such pairs exist only among the fixtures.
func (b *builder) handle() string {
	for {
		h := b.rng.pick(starts) + b.rng.pick(middles) + b.rng.pick(ends)
		if len(h) < 4 || !b.claim("handle "+h) {
			continue
		}
		switch b.rng.below(8) {
		case 0:
			return strings.ToUpper(h)
		case 1, 2:
			return strings.ToUpper(h[:1]) + h[1:]
		case 3:
			return strings.NewReplacer("e", "3", "o", "0").Replace(h)
		case 4:
			return h + "-"
		default:
			return h
		}
	}
}

// addSmall adds items without an event.
func (b *builder) addSmall() {
	for range loneStickers {
		name := "Sticker | " + b.fresh("sticker")
		rank := b.rng.below(one)
		b.add(stickerKind, name, rank, 800, 0)
		b.add(stickerKind, name+" (Foil)", rank, 1800, 0)
	}
	for range graffitiMotifs {
		motif, rank := "Sealed Graffiti | "+b.fresh("graffiti"), b.rng.below(one)
		for _, colour := range colours {
			b.add(graffitiKind, motif+" ("+colour+")", rank, 700+int64(b.rng.below(600)), 0)
		}
	}
	for range plainGraffiti {
		b.add(graffitiKind, "Sealed Graffiti | "+b.fresh("graffiti"), b.rng.below(one), 1000, 0)
	}
	for range cases {
		name := b.fresh("case")
		b.add(containerKind, "Operation "+name+" Weapon Case", b.rng.below(one), 1000, 0)
	}
	for range musicKits {
		name := "Music Kit | " + b.rng.pick(forenames) + " " + b.rng.pick(surnames) + ", " + b.fresh("song")
		rank := b.rng.below(one)
		b.add(musicKind, name, rank, 1000, 0)
		b.add(musicKind, statTrak+name, rank, 1700, 0)
	}
	for range charms {
		b.add(charmKind, "Charm | "+b.fresh("charm"), b.rng.below(one), 1000, 0)
	}
	for range pins {
		b.add(pinKind, b.fresh("pin")+" Pin", b.rng.below(one), 1000, 0)
	}
	b.addPatches()
	b.addAgents()
}

func (b *builder) addPatches() {
	for _, team := range teams {
		for _, place := range places[:2] {
			name, rank := "Patch | "+team, b.rng.below(one)
			b.add(patchKind, name+" | "+place+" 2021", rank, 800, 0)
			b.add(patchKind, name+" (Gold) | "+place+" 2021", rank, 2200, 0)
		}
	}
	for _, metal := range []string{"Tin", "Bronze", "Silver", "Gold", "Platinum"} {
		for _, rank := range []string{"Scout", "Ranger", "Marshal"} {
			b.add(patchKind, "Patch | "+metal+" "+rank, b.rng.below(one), 1000, 0)
		}
	}
}

// addAgents adds characters. Some of their names contain single or double quotes.
func (b *builder) addAgents() {
	for i := range agents {
		forename, surname := b.rng.pick(forenames), b.rng.pick(surnames)
		nick := b.fresh("agent")
		faction := " | " + b.rng.pick(factions)
		name := forename + " " + surname + " The " + nick
		switch i % 3 {
		case 0:
			name = "'" + nick + "' " + surname
		case 1:
			name = `"` + nick + `" ` + surname
		}
		b.add(agentKind, name+faction, b.rng.below(one), 1000, 0)
	}
}

// fresh generates a pair of words that is unique within a category of items.
func (b *builder) fresh(category string) string {
	for {
		words := b.rng.pick(adjectives) + " " + b.rng.pick(nouns)
		if b.claim(category + " " + words) {
			return words
		}
	}
}
