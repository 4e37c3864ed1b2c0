package cli

import (
	"fmt"
	"net/http"
)

// refreshFees simulates invalid rules (source=...) or large fee changes, depending on the
// query.
func refreshFees(w http.ResponseWriter, r *http.Request) {
	dry := r.URL.Query().Get("dryRun") == "1"
	if r.URL.Query().Get("allowLargeChange") != "1" && !dry {
		refuse(w, 409, `{"title":"Conflict","status":409,"detail":"Fees would change by over half; see errors.","code":"large_fee_change",
			"errors":[{"pointer":"/fallback","code":"large_change","detail":"a sale of 100.00 USD costs 5.00, not 1.00"}],"requestId":"r8"}`)
		return
	}
	response(200, fmt.Sprintf(`{"version":4,"previousVersion":3,"changed":true,"dryRun":%t,"added":["a","b"],"removed":[],"modified":["fallback"],
		"largeChanges":["a sale of 100.00 USD costs 5.00, not 1.00"]}`, dry))(w, r)
}

const quotedFee = `{"version":4,"rule":"usd","amount":1990,"fee":260,"net":1730,"currency":"USD","steps":["rule usd applies","the fee is 2.60 USD; the net amount is 17.30 USD"],
	"notMatched":[{"rule":"card","reason":"payment method is missing; the rule requires card"}],"moreNotMatched":0}`

// showFees returns version 4 and previous versions.
func showFees(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("version") == "9" {
		refuse(w, 404, `{"title":"Not Found","status":404,"detail":"There is no version 9 of the fee rules.","code":"fee_version_not_found","requestId":"r9"}`)
		return
	}
	response(200, `{"version":4,"digest":"d4","source":"/etc/fees.json","activatedAt":"2026-01-02T03:04:05Z","activatedBy":"admin",
		"rules":{"rules":[
			{"id":"usd","priority":1,"conditions":{"kind":["sale"],"currency":["USD"]},"basisPoints":1500,"fixed":30,"minimum":5,"maximum":900,"basis":"net","rounding":"up"},
			{"id":"tiers","priority":2,"conditions":{"currency":["EUR"]},"tiers":[{"from":0,"below":500,"basisPoints":1000},{"from":500,"basisPoints":800}],"basis":"gross","rounding":"halfEven"}],
			"fallback":{"basisPoints":250,"basis":"gross","rounding":"halfEven"}},
		"versions":[{"version":4,"digest":"d4","source":"/etc/fees.json","activatedAt":"2026-01-02T03:04:05Z","activatedBy":"admin"},
			{"version":3,"digest":"d3","source":"built-in","activatedAt":"2026-01-01T03:04:05Z","activatedBy":"start"}]}`)(w, r)
}

// verifyWallet returns a different result for each user name.
func verifyWallet(w http.ResponseWriter, r *http.Request) {
	report := func(status, check, failures string, n int) {
		checkpoint, warning := `null`, ``
		if status == "ok" {
			checkpoint, warning = `"AQJrMQ"`, `{"check":"timestamp_monotonic","userId":"well","currency":"USD","seq":9,"expected":"not before x","actual":"y","message":"The entry is early."}`
		}
		response(200, fmt.Sprintf(`{"userId":%q,"ok":%t,"status":%q,"verifiedAt":"2026-01-02T03:04:05Z",
			"accounts":[{"currency":"USD","entries":812,"lastSeq":812,"computedBalance":10450,"cachedBalance":10950,"headHash":"ab"}],
			"checks":[{"name":"cached_balance",%s}],"failures":[%s],"failureCount":%d,"warnings":[%s],"checkpoint":%s}`,
			r.PathValue("user"), status == "ok", status, check, failures, n, warning, checkpoint))(w, r)
	}
	switch r.PathValue("user") {
	case "well":
		report("ok", `"status":"pass","examined":1,"failures":0`, "", 0)
	case "tampered":
		report("failed", `"status":"fail","examined":1,"failures":1`,
			`{"check":"cached_balance","userId":"tampered","currency":"USD","seq":null,"expected":"10450","actual":"10950","message":"The account's balance is not the sum of its entries."}`, 3)
	case "unread":
		report("incomplete", `"status":"skipped","examined":0,"failures":0,"reason":"the checkpoint is damaged"`, "", 0)
	default:
		refuse(w, 404, `{"title":"Not Found","status":404,"detail":"The user has no wallet. A first deposit creates it.","code":"wallet_not_found","requestId":"r10"}`)
	}
}
