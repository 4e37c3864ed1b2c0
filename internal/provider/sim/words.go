package sim

// Words for generated names.

// adjectives and nouns are the two words of finishes, stickers, graffiti and other items.
var adjectives = []string{
	"Amber", "Ancient", "Arctic", "Ashen", "Autumn", "Bitter", "Blazing", "Borrowed", "Brass", "Bright",
	"Broken", "Burnished", "Candid", "Carved", "Chalk", "Cinder", "Clockwork", "Coastal", "Copper", "Coral",
	"Crooked", "Dappled", "Distant", "Drowsy", "Dusty", "Electric", "Endless", "Faded", "Feral", "Folded",
	"Forgotten", "Fractured", "Frosted", "Gilded", "Glass", "Granite", "Hidden", "Hollow", "Idle", "Inland",
	"Jagged", "Kindled", "Lacquered", "Lantern", "Lonely", "Lunar", "Marble", "Midnight", "Mirrored", "Molten",
	"Mossy", "Nimble", "Northern", "Painted", "Paper", "Patient", "Polar", "Quiet", "Restless", "Rusted",
	"Saffron", "Salted", "Scarlet", "Sleepless", "Smoky", "Solar", "Spiral", "Stitched", "Sunken", "Tangled",
	"Tempered", "Tidal", "Twilight", "Velvet", "Violet", "Wandering", "Weathered", "Wicked", "Wild", "Woven",
}

var nouns = []string{
	"Albatross", "Anchor", "Archive", "Atlas", "Badger", "Beacon", "Bloom", "Bramble", "Canyon", "Cascade",
	"Cathedral", "Circuit", "Cobra", "Comet", "Compass", "Cosmos", "Crane", "Current", "Delta", "Drifter",
	"Dune", "Echo", "Ember", "Falcon", "Fathom", "Ferry", "Fjord", "Fresco", "Garden", "Geyser",
	"Glacier", "Harbor", "Harvest", "Helix", "Heron", "Horizon", "Ivy", "Jackal", "Jigsaw", "Kettle",
	"Kite", "Labyrinth", "Lichen", "Lighthouse", "Locust", "Magnolia", "Mantis", "Marsh", "Meadow", "Meridian",
	"Monsoon", "Mosaic", "Nettle", "Oasis", "Orbit", "Orchard", "Otter", "Parade", "Pendulum", "Pilgrim",
	"Plume", "Prism", "Quarry", "Raven", "Reef", "Relay", "Riddle", "Sable", "Signal", "Sparrow",
	"Spectrum", "Spindle", "Summit", "Tapestry", "Thicket", "Thistle", "Timber", "Torrent", "Tundra", "Vagabond",
	"Vane", "Voyage", "Warren", "Willow", "Windmill", "Zephyr",
}

// places are the first part of an event's name. The second part is a year.
var places = []string{
	"Norhaven", "Eastmere", "Calder Bay", "Vintersund", "Ashgrove", "Port Linden", "Kesterling", "Marrowby",
}

// arenas are the maps of souvenir packages and highlights.
var arenas = []string{"Foundry", "Viaduct", "Terrace", "Saltworks", "Orchard", "Depot", "Citadel"}

var teams = []string{
	"Iron Foxes", "Team Meridian", "Nine Lanterns", "Paper Tigers", "Vanta", "Kilo Esports", "Old Harbor", "Ravel",
	"Sunday League", "Team Quartz", "Northern Line", "Afterglow", "Blue Heron", "Cold Start", "Dogma", "Elm Street Five",
	"Fenrir Gaming", "Grayscale", "Halcyon", "Ibex", "Jolt", "Keystone", "Lumen", "Mistral",
}

// starts, middles and ends are the syllables of player names.
var (
	starts = []string{
		"be", "bra", "chi", "dex", "do", "fa", "flu", "gri", "ha", "ja", "ke", "kri", "lo", "lum", "mi", "na",
		"ne", "o", "pax", "qui", "ra", "sa", "ske", "ti", "tor", "u", "va", "ve", "vi", "wa", "xe", "zo",
	}
	middles = []string{"", "", "la", "ri", "no", "mba", "ssi", "tte", "ko", "v", "nd", "rk", "xo", "pe"}
	ends    = []string{"n", "r", "x", "zz", "to", "ky", "s", "le", "mir", "q", "ddy", "sen", "va", "ph"}
)

// colours are the variants of a graffiti.
var colours = []string{
	"Moss Green", "Chalk White", "Brick Red", "Harbor Blue", "Mustard Yellow", "Plum Purple", "Peach Pink", "Slate Grey",
	"Rust Orange", "Mint Green", "Ink Black", "Sky Blue", "Clay Brown", "Lilac Purple", "Cherry Red", "Sand Yellow",
	"Fern Green", "Ash Grey", "Rose Pink",
}

// forenames, surnames and factions are parts of the names of agents and artists.
var (
	forenames = []string{
		"Ansel", "Brida", "Corwin", "Dagny", "Emeric", "Fenna", "Gideon", "Hollis", "Ines", "Jarek", "Katya", "Leander",
		"Mirela", "Nils", "Odette", "Piet", "Quill", "Rosalind", "Stellan", "Tamsin", "Ulf", "Vesna", "Wystan", "Yara",
	}
	surnames = []string{
		"Abernathy", "Blackwood", "Castellan", "Drummond", "Eklund", "Farrow", "Grimaldi", "Hargrave", "Ivarsson", "Jessop",
		"Kowal", "Lindqvist", "Marlowe", "Novák", "Okafor", "Pemberton", "Quist", "Rousseau", "Sørensen", "Thackeray",
		"Underhill", "Vasquez", "Wexford", "Zielinski",
	}
	factions = []string{"Night Office", "Harbor Patrol", "Sabine Guard", "Copper Line", "Free Couriers", "Ridge Watch"}
)
