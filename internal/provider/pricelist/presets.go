package pricelist

import (
	"maps"
	"slices"
)

// PresetNames returns the names of all presets, sorted.
func PresetNames() []string { return slices.Sorted(maps.Keys(presets())) }

// Preset returns a preset as a JSON object. The result ok is false for an unknown name.
func Preset(name string) (doc string, ok bool) {
	doc, ok = presets()[name]
	return doc, ok
}

// presets returns the JSON object of each preset. A list with a preset can override its
// members. Comments with "unverified" mark facts that the publisher does not document.
func presets() map[string]string {
	return map[string]string{
		// LIS-SKINS: the grouped export. It requires no key. Prices are in dollars. The
		// file contains no time, so the preset uses the Last-Modified header.
		"lis-skins": `{
		"title": "LIS-SKINS", "location": "https://lis-skins.com/market_export_json/csgo.json",
		"format": "jsonArray", "appId": 730, "currency": "USD", "minItems": 100,
		"name": "name", "time": {"modified": true},
		"markets": [{"key": "lisskins", "title": "LIS-SKINS", "ask": "price", "listings": "count"}]}`,

		// BitSkins v2: prices are in thousandths of a dollar. Names contain the phase.
		"bitskins": `{
		"title": "BitSkins", "location": "https://api.bitskins.com/market/insell/{appId}",
		"format": "jsonArray", "appId": 730, "currency": "USD", "unit": 1000, "minItems": 100,
		"root": "list", "name": "name", "phase": {"name": "infix"},
		"markets": [{"key": "bitskins", "title": "BitSkins", "ask": "price_min", "listings": "quantity"}]}`,

		// ShadowPay: the field "volume" is the number of listings. Prices may be strings.
		// The position of a phase in a name is unverified, so the preset supports both.
		"shadowpay": `{
		"title": "ShadowPay", "location": "https://api.shadowpay.com/api/v2/user/items/prices",
		"headers": {"Authorization": "Bearer ${SHADOWPAY_API_KEY}"},
		"format": "jsonArray", "appId": 730, "currency": "USD", "minItems": 100,
		"root": "data", "name": "steam_market_hash_name", "phase": {"name": "both"},
		"markets": [{"key": "shadowpay", "title": "ShadowPay", "ask": "price", "listings": "volume"}]}`,

		// SteamApis requires a paid plan. prices.safe is derived from sales. last_30d is
		// the number of sales in 30 days. Both are 0 for an item without sales.
		"steamapis": `{
		"title": "SteamApis", "location": "https://api.steamapis.com/market/items/{appId}?api_key=${STEAMAPIS_API_KEY}",
		"format": "jsonArray", "appId": 730, "currency": "USD", "minItems": 100,
		"root": "data", "name": "market_hash_name",
		"markets": [{"key": "steam", "title": "Steam Community Market", "sale": "prices.safe",
			"sales": "prices.sold.last_30d", "salesWindow": "720h",
			"time": {"field": "updated_at", "format": "unixMs"}}]}`,

		// skinstrack requires a paid plan. Each item has quotes of several markets. The
		// preset does not use "volume", because its period is unknown. The format of the
		// times is unverified.
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

		// ByMykel's tracker of the Steam market changes about weekly. The list is an object
		// with a price in cents for each name. The format of its time is unverified.
		"bymykel": `{
		"title": "ByMykel price tracker",
		"location": "https://raw.githubusercontent.com/ByMykel/counter-strike-price-tracker/main/static/latest.json",
		"format": "jsonObject", "appId": 730, "currency": "USD", "unit": 100, "minItems": 100,
		"root": "prices", "time": {"field": "metadata.updated_at"},
		"markets": [{"key": "steam", "title": "Steam Community Market", "ask": "."}]}`,

		// The static files of csgotrader.app change daily. Each is an object with a price
		// in dollars for each name. 0, null and "null" mean no price. The files contain no
		// time, so the presets use the Last-Modified header.
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
		// The CSGO Trader extension computes this price from other markets. It is not an
		// offer, so the preset reads it as a sale.
		"csgotrader-csgotrader": csgotrader("csgotrader", "csgotrader", "CSGO Trader",
			`"sale": "price", "phases": {"sale": "doppler"}`),
		"csgotrader-buff163": csgotrader("buff163", "buff163", "Buff163",
			`"ask": "starting_at.price", "bid": "highest_order.price",
		"phases": {"ask": "starting_at.doppler", "bid": "highest_order.doppler"}`),
	}
}

// The two most common formats of values in the csgotrader files.
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
