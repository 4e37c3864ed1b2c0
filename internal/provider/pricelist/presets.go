package pricelist

import (
	"maps"
	"slices"
)

// PresetNames returns the names of all presets, sorted.
func PresetNames() []string { return slices.Sorted(maps.Keys(presets())) }

// Preset returns the JSON members of a preset.
func Preset(name string) (doc string, ok bool) {
	doc, ok = presets()[name]
	return doc, ok
}

// presets holds the members of each preset. A list with a preset may override each of them.
// Undocumented assumptions are marked "unsure".
func presets() map[string]string {
	return map[string]string{
		// LIS-SKINS, grouped export, no key: an array of name, price and count in whole
		// dollars. The file has no time of its own, so the HTTP date is used.
		"lis-skins": `{
		"title": "LIS-SKINS", "location": "https://lis-skins.com/market_export_json/csgo.json",
		"format": "jsonArray", "appId": 730, "currency": "USD", "minItems": 100,
		"name": "name", "time": {"modified": true},
		"markets": [{"key": "lisskins", "title": "LIS-SKINS", "ask": "price", "listings": "count"}]}`,

		// BitSkins v2, in mills. Phases are part of the name.
		"bitskins": `{
		"title": "BitSkins", "location": "https://api.bitskins.com/market/insell/{appId}",
		"format": "jsonArray", "appId": 730, "currency": "USD", "unit": 1000, "minItems": 100,
		"root": "list", "name": "name", "phase": {"name": "infix"},
		"markets": [{"key": "bitskins", "title": "BitSkins", "ask": "price_min", "listings": "quantity"}]}`,

		// ShadowPay: the field "volume" counts listings; prices may be strings. The
		// position of a phase in a name is unsure, so both positions are read.
		"shadowpay": `{
		"title": "ShadowPay", "location": "https://api.shadowpay.com/api/v2/user/items/prices",
		"headers": {"Authorization": "Bearer ${SHADOWPAY_API_KEY}"},
		"format": "jsonArray", "appId": 730, "currency": "USD", "minItems": 100,
		"root": "data", "name": "steam_market_hash_name", "phase": {"name": "both"},
		"markets": [{"key": "shadowpay", "title": "ShadowPay", "ask": "price", "listings": "volume"}]}`,

		// SteamApis, paid: prices.safe comes from sales, and the sales of 30 days are
		// counted; an item without sales has zeros.
		"steamapis": `{
		"title": "SteamApis", "location": "https://api.steamapis.com/market/items/{appId}?api_key=${STEAMAPIS_API_KEY}",
		"format": "jsonArray", "appId": 730, "currency": "USD", "minItems": 100,
		"root": "data", "name": "market_hash_name",
		"markets": [{"key": "steam", "title": "Steam Community Market", "sale": "prices.safe",
			"sales": "prices.sold.last_30d", "salesWindow": "720h",
			"time": {"field": "updated_at", "format": "unixMs"}}]}`,

		// skinstrack, paid: each item holds quotes of several markets. Its "volume" covers
		// an unstated period, so it is not used as sales. The format of its times is
		// unsure.
		"skinstrack": `{
		"title": "skinstrack",
		"location": "https://api.skinstrack.com/v1/paid/items?providers=csfloat,buff,skinport",
		"headers": {"X-API-KEY": "${SKINSTRACK_API_KEY}"},
		"format": "jsonArray", "appId": 730, "currency": "USD", "minItems": 100,
		"name": "market_hash_name", "each": "prices", "market": "provider",
		"quote": {"ask": "price", "bid": "meta.buy_order", "listings": "count", "time": {"field": "updated_at"}},
		"markets": [
			{"key": "csfloat", "title": "CSFloat"},
			{"key": "buff163", "title": "Buff163", "value": "buff"},
			{"key": "skinport", "title": "Skinport"}]}`,

		// ByMykel's tracker of the Steam market, about weekly: an object of names and
		// cents. The format of its time is unsure.
		"bymykel": `{
		"title": "ByMykel price tracker",
		"location": "https://raw.githubusercontent.com/ByMykel/counter-strike-price-tracker/main/static/latest.json",
		"format": "jsonObject", "appId": 730, "currency": "USD", "unit": 100, "minItems": 100,
		"root": "prices", "time": {"field": "metadata.updated_at"},
		"markets": [{"key": "steam", "title": "Steam Community Market", "ask": "."}]}`,

		// The static files of csgotrader.app, daily: objects of names, in whole dollars. 0,
		// null and "null" mean no price. They have no time of their own, so the HTTP date
		// is used.
		"csgotrader-steam": csgotrader("steam", "steam", "Steam Community Market",
			`"sale": ["last_24h", "last_7d", "last_30d", "last_90d"]`),
		"csgotrader-skinport":   csgotrader("skinport", "skinport", "Skinport", `"ask": "starting_at"`),
		"csgotrader-bitskins":   csgotrader("bitskins", "bitskins", "BitSkins", `"ask": "price", "bid": "instant_sale_price"`),
		"csgotrader-lootfarm":   csgotrader("lootfarm", "lootfarm", "LOOT.Farm", plainPrice),
		"csgotrader-csgotm":     csgotrader("csgotm", "marketcsgo", "Market.CSGO", plainPrice),
		"csgotrader-csgoempire": csgotrader("csgoempire", "csgoempire", "CSGOEmpire", plainPrice),
		"csgotrader-swapgg":     csgotrader("swapgg", "swapgg", "swap.gg", plainPrice),
		"csgotrader-youpin":     csgotrader("youpin", "youpin", "Youpin898", plainPrice),
		"csgotrader-csmoney":    csgotrader("csmoney", "csmoney", "CS.MONEY", dopplerPrice),
		"csgotrader-cstrade":    csgotrader("cstrade", "cstrade", "CS.TRADE", dopplerPrice),
		"csgotrader-csfloat":    csgotrader("csfloat", "csfloat", "CSFloat", dopplerPrice),
		"csgotrader-lisskins":   csgotrader("lisskins", "lisskins", "LIS-SKINS", dopplerPrice),
		// The extension's own blend of other markets; there are no offers at this price.
		"csgotrader-csgotrader": csgotrader("csgotrader", "csgotrader", "CSGO Trader",
			`"sale": "price", "phases": {"sale": "doppler"}`),
		"csgotrader-buff163": csgotrader("buff163", "buff163", "Buff163",
			`"ask": "starting_at.price", "bid": "highest_order.price",
		"phases": {"ask": "starting_at.doppler", "bid": "highest_order.doppler"}`),
	}
}

// The two most common forms of values in a csgotrader file.
const (
	plainPrice   = `"ask": "."`
	dopplerPrice = `"ask": "price", "phases": {"ask": "doppler"}`
)

func csgotrader(file, key, title, prices string) string {
	return `{
		"title": "` + title + ` by CSGO Trader", "location": "https://prices.csgotrader.app/latest/` + file + `.json",
		"format": "jsonObject", "appId": 730, "currency": "USD", "minItems": 100,
		"time": {"modified": true},
		"markets": [{"key": "` + key + `", "title": "` + title + `", ` + prices + `}]}`
}
