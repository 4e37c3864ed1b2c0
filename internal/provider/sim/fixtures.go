package sim

// fixture is a hand-written item of the catalog. Each one covers a requirement or a
// known mistake of other price tools.
type fixture struct {
	name  string
	kind  kind
	value mil // median of the asks
	trait trait
}

// trait is a set of special properties of an item's quotes.
type trait uint8

const (
	pinned    trait = 1 << iota // every market offers the item at all times
	absurd                      // one market always asks absurdPrice for the item
	unoffered                   // no market offers the item; some report its last sale
	unwanted                    // the item was not sold for a month
)

// absurdPrice is the ask of one market for a worthless graffiti. The engine must reject
// it as an outlier.
const absurdPrice mil = 1_287_500

// fixtures are the first items of the catalog, so that a simulator with few names
// includes them.
var fixtures = []fixture{
	{"AK-47 | Redline (Field-Tested)", weaponKind, 31_400, pinned},
	{"★ Karambit", knifeKind, 912_000, pinned},
	{"★ Karambit | Nebula Drift (Factory New)", knifeKind, 1_180_000, pinned},
	{"Sealed Graffiti | Loose Change (Chalk White)", graffitiKind, 30, absurd},
	{"Sealed Graffiti | Spare Button (Ink Black)", graffitiKind, 30, 0},
	{"Charm | Last of Its Kind", charmKind, 48_000, unoffered},
	{"Patch | A Fan's Favorite", patchKind, 1_900, unwanted},

	// Vanilla knives: their names have no "|".
	{"★ StatTrak™ Karambit", knifeKind, 990_000, 0},
	{"★ Bayonet", knifeKind, 310_000, 0},

	// Five pairs of names that differ only in case.
	{"Sticker | Kestrel (Holo) | Norhaven 2018", stickerKind, 4_100, 0},
	{"Sticker | kestrel (Holo) | Norhaven 2018", stickerKind, 690, 0},
	{"Sticker | mOth | Eastmere 2022", stickerKind, 60, 0},
	{"Sticker | Moth | Eastmere 2022", stickerKind, 1_250, 0},
	{"Sticker Slab | VANTA (Gold) | Ashgrove 2024", slabKind, 22_000, 0},
	{"Sticker Slab | Vanta (gold) | Ashgrove 2024", slabKind, 940, 0},
	{"Souvenir Charm | Calder Bay 2026 Highlight | tEN on Depot", highlightKind, 170, 0},
	{"Souvenir Charm | Calder Bay 2026 Highlight | Ten on Depot", highlightKind, 480, 0},
	{"Music Kit | Odette Quist, undertow", musicKind, 3_300, 0},
	{"Music Kit | Odette Quist, Undertow", musicKind, 7_800, 0},

	// Double, leading, trailing and no-break spaces.
	{"Sticker | Twin  Peaks (Foil)", stickerKind, 820, 0},
	{"Sticker | Twin Peaks (Foil)", stickerKind, 12_400, 0},
	{"Souvenir  MP9 | Idle Orchard (Field-Tested)", souvenirKind, 310, 0},
	{"Trailing Lantern Token ", charmKind, 5_600, 0},
	{"Trailing Lantern Token", charmKind, 56_000, 0},
	{" Leading Lantern Token", charmKind, 740, 0},
	{"Patch | Hard\u00a0Space", patchKind, 1_120, 0},
	{"Patch | Hard Space", patchKind, 450, 0},

	// Characters with a special meaning in URLs, shells, forms, queries or
	// spreadsheets.
	{"#1 Fan Foam Hand", charmKind, 2_700, 0},
	{"'Blue' Hargrave | Night Office", agentKind, 9_900, 0},
	{`"Two Spoons" Eklund | Copper Line`, agentKind, 8_700, 0},
	{"Sticker | Salt & Pepper", stickerKind, 530, 0},
	{"Sticker | 1+1=3", stickerKind, 410, 0},
	{"Sticker | Who? Me?", stickerKind, 380, 0},
	{"Sticker | @here", stickerKind, 290, 0},
	{"Sticker | Ca$h Only", stickerKind, 1_340, 0},
	{"Sticker | Five * Hotel", stickerKind, 220, 0},
	{"Sticker | ~/home", stickerKind, 610, 0},
	{"Sticker | 100% Wool", stickerKind, 760, 0},
	{"Sticker | I <3 Depot", stickerKind, 930, 0},
	{"Sticker | Either/Or (Foil)", stickerKind, 2_240, 0},
	{"Sticker | Back\\slash", stickerKind, 350, 0},
	{"Sticker | Semi; Colon, Comma: Dot.", stickerKind, 440, 0},
	{"Sticker | {Curly} [Square]", stickerKind, 470, 0},
	{"../Sticker | Up One Level", stickerKind, 130, 0},
	{".", charmKind, 880, 0},
	{"=SUM(A1:A9)", charmKind, 640, 0},
	{"null", charmKind, 150, 0},
	{"0", charmKind, 190, 0},

	// Plain text that resembles an escape sequence.
	{"Sticker | Left &lt; Right", stickerKind, 510, 0},
	{"Sticker | Left < Right", stickerKind, 5_100, 0},
	{"Sticker | Path%2FFinder", stickerKind, 270, 0},
	{"Sticker | Path/Finder", stickerKind, 2_650, 0},
	{"Sticker | Plus%20Minus", stickerKind, 360, 0},
	{`Sticker | \u2605 Spelled Out`, stickerKind, 570, 0},

	// Names with a line break or a tab.
	{"Taunt: The Long\nGoodbye", musicKind, 3_900, 0},
	{"Taunt: The Long Goodbye", musicKind, 39_000, 0},
	{"Patch | Tab\tStop", patchKind, 1_010, 0},

	// Characters beyond ASCII: similar ones, composed and decomposed accents,
	// full-width letters, joined emoji, and right-to-left text.
	{"Music Kit | Nils Farrow, 壱", musicKind, 4_800, 0},
	{"Music Kit | Nils Farrow, 弐", musicKind, 1_600, 0},
	{"Sticker | 龍 (Holo)", stickerKind, 3_700, 0},
	{"Sticker | With ♥ (Holo)", stickerKind, 1_450, 0},
	{"Sticker | Café Norhaven", stickerKind, 890, 0},
	{"Sticker | Cafe\u0301 Norhaven", stickerKind, 8_900, 0},
	{"Sticker | Ｗｉｄｅ Open", stickerKind, 320, 0},
	{"Sticker | 👩‍🚀 Liftoff", stickerKind, 2_050, 0},
	{"Sticker | שלום (Foil)", stickerKind, 980, 0},
	{"Sticker | straße", stickerKind, 340, 0},
	{"Sticker | Metal Champion ★", stickerKind, 660, 0},
}
