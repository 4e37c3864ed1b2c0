package feed

// Title returns the display name of a marketplace, or its key if it is unknown. All providers
// use the same key for a marketplace, so its quotes are counted once.
func Title(key string) string {
	if title, ok := titles[key]; ok {
		return title
	}
	return key
}

// titles holds the display names of marketplaces for items of Steam games.
var titles = map[string]string{
	"avanmarket":  "Avan.market",
	"bitskins":    "BitSkins",
	"buff163":     "Buff163",
	"buffmarket":  "Buff.market",
	"c5":          "C5Game",
	"csdeals":     "CS.Deals",
	"csfloat":     "CSFloat",
	"csgo500":     "CSGO500",
	"csgoempire":  "CSGOEmpire",
	"csmoney":     "CS.MONEY",
	"csmoney_m":   "CS.MONEY Market",
	"csmoney_t":   "CS.MONEY Trade",
	"cstrade":     "CS.TRADE",
	"dmarket":     "DMarket",
	"dupefi":      "Dupe.fi",
	"ecosteam":    "ECOSteam",
	"gameboost":   "GameBoost",
	"gamerpay":    "GamerPay",
	"haloskins":   "HaloSkins",
	"itradegg":    "iTrade.gg",
	"lisskins":    "LIS-SKINS",
	"lootfarm":    "LOOT.Farm",
	"mannco":      "Mannco.store",
	"marketcsgo":  "market.csgo.com",
	"pirateswap":  "PirateSwap",
	"rapidskins":  "RapidSkins",
	"shadowpay":   "ShadowPay",
	"skinbaron":   "SkinBaron",
	"skinbid":     "SkinBid",
	"skinflow":    "SkinFlow",
	"skinland":    "Skin.Land",
	"skinout":     "SkinOut",
	"skinplace":   "Skin.Place",
	"skinport":    "Skinport",
	"skinscom":    "Skins.com",
	"skinsmonkey": "SkinsMonkey",
	"skinswap":    "SkinSwap",
	"skinswap_t":  "SkinSwap Trade",
	"skinvault":   "SkinVault",
	"steam":       "Steam Community Market",
	"swapgg":      "Swap.gg",
	"tradeit":     "Tradeit.gg",
	"waxpeer":     "Waxpeer",
	"whitemarket": "White.market",
	"youpin":      "Youpin898",
}
