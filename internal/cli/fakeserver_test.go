package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// The fake server accepts these secrets.
const (
	fakeMarketSecret  = "market-secret-0123456789"
	fakePlatformToken = "platform-token-0123456789"
	fakeAdminToken    = "admin-token-0123456789abc"
)

// fakeServer simulates a server with fixed responses.
type fakeServer struct {
	*httptest.Server

	mu       sync.Mutex
	jobPolls int
	jobs     []string // successive responses for job 17; the last one repeats
	pushed   []string // bodies of inventory syncs
	onPoll   func(n int)

	eventPolls, awayAt int // requests for events; number of the first request whose connection breaks
}

func newFakeServer(t testing.TB) *fakeServer {
	t.Helper()
	f := &fakeServer{jobs: []string{jobRunning, jobApply, jobFinished}}
	mux := http.NewServeMux()
	market := func(h http.HandlerFunc) http.HandlerFunc { return wants("x-market-sync-secret", fakeMarketSecret, h) }
	platform := func(h http.HandlerFunc) http.HandlerFunc {
		return wants("Authorization", "Bearer "+fakePlatformToken, h)
	}
	mux.HandleFunc("POST /api/market-prices/refresh", market(f.refresh))
	mux.HandleFunc("GET /api/market-prices/jobs/17", market(f.job))
	mux.HandleFunc("GET /api/market-prices/jobs", market(listJobs))
	mux.HandleFunc("GET /api/market-prices/provider-debug", market(response(200, `{"providers":[{"provider":"sim","markets":[{"market":"fjord"},{"market":"steam"}]}]}`)))
	mux.HandleFunc("GET /api/prices/items", market(searchItems))
	mux.HandleFunc("GET /api/market-prices/status", market(response(200, statusIdle)))
	mux.HandleFunc("GET /api/prices/items/{name}", market(f.item))
	mux.HandleFunc("POST /api/market-prices/items/{name}/accept", market(f.item))
	mux.HandleFunc("GET /api/events", market(f.listEvents))
	mux.HandleFunc("GET /api/users", platform(listUsers))
	mux.HandleFunc("POST /api/inventory/{user}/sync", platform(f.sync))
	mux.HandleFunc("GET /api/inventory/{user}", platform(f.inventory))
	mux.HandleFunc("GET /api/health", response(200, `{"status":"ok","version":"v1","uptimeSeconds":75,"checks":{"database":"ok","queue":"ok"}}`))
	admin := func(h http.HandlerFunc) http.HandlerFunc {
		return wants("Authorization", "Bearer "+fakeAdminToken, h)
	}
	mux.HandleFunc("POST "+feeRulesPath+"/refresh", admin(refreshFees))
	mux.HandleFunc("GET "+feeRulesPath, admin(showFees))
	mux.HandleFunc("POST "+feeRulesPath+"/quote", admin(response(200, quotedFee)))
	mux.HandleFunc("GET /api/functions/admin/wallet-ledger/{user}/verify", admin(verifyWallet))
	mux.HandleFunc("GET /api/keys", admin(response(200, `{"items":[{"name":"shop","scopes":["prices:read","market:write"],"requestsPerMinute":600,"createdAt":"2026-01-02T03:04:05Z","rotatedAt":null,"expiresAt":"2026-02-02T03:04:05Z","oldSecretUntil":null}],"nextCursor":null}`)))
	mux.HandleFunc("POST /api/keys", admin(wantsBody(response(201, `{"name":"shop","secret":"assay_SECRET1","oldSecretUntil":null}`), `{"name":"shop","scopes":["prices:read","market:write"],"requestsPerMinute":600}`)))
	mux.HandleFunc("POST /api/keys/shop/rotate", admin(response(200, `{"name":"shop","secret":"assay_SECRET2","oldSecretUntil":"2026-01-03T03:04:05Z"}`)))
	mux.HandleFunc("DELETE /api/keys/shop", admin(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	const ben = `"createdAt":"2026-01-02T03:04:05Z","changedAt":"2026-01-03T03:04:05Z"}`
	mux.HandleFunc("GET /api/operators", admin(response(200, `{"items":[{"name":"anna","role":"admin","disabled":false,"createdAt":"2026-01-02T03:04:05Z","changedAt":"2026-01-02T03:04:05Z"},{"name":"ben","role":"read","disabled":true,`+ben+`],"nextCursor":null}`)))
	mux.HandleFunc("POST /api/operators", admin(wantsBody(response(201, `{"name":"ben","role":"admin","disabled":false,`+ben), `{"name":"ben","role":"admin","password":"correct horse battery"}`)))
	mux.HandleFunc("PATCH /api/operators/{operator}", admin(patchOperator))
	mux.HandleFunc("POST /api/webhooks", admin(createWebhook))
	mux.HandleFunc("GET /api/audit", admin(response(200, `{"items":[{"at":"2026-01-02T03:04:05Z","actor":"key:shop","address":"203.0.113.7","action":"PUT /api/users/{userId}","target":"/api/users/u1","requestId":"r9"}],"nextCursor":null}`)))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// listJobs returns one run, of the kind that the request names.
func listJobs(w http.ResponseWriter, r *http.Request) {
	run := jobPartial
	if kind := r.URL.Query().Get("kind"); kind != "" {
		run = strings.Replace(run, `"kind":"bulk"`, `"kind":"`+kind+`"`, 1)
	}
	response(200, `{"items":[`+run+`],"nextCursor":null}`)(w, r)
}

// wants rejects requests without the credential.
func wants(header, value string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != value {
			refuse(w, 401, `{"title":"Unauthorized","status":401,"detail":"the secret is missing or wrong","code":"unauthorized","requestId":"r1"}`)
			return
		}
		h(w, r)
	}
}

func response(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (f *fakeServer) refresh(w http.ResponseWriter, r *http.Request) {
	switch q := r.URL.Query(); {
	case q.Get("dryRun") == "1":
		response(200, `{"dryRun":true,"forced":false,"totalItems":30325,"dueItems":30015,"skippedItems":{"ttl":0,"noSales":310,"budget":0},
			"providers":[{"provider":"sim","requests":10,"seconds":1.5,"hosts":[
				{"host":"a","requests":10,"deferred":2,"deferredFiles":["x.json","y.json"],"deferredNames":0,"why":"day","freeAt":"2026-03-02T00:00:00Z","seconds":1.5},
				{"host":"b","requests":0,"deferred":0,"deferredFiles":[],"deferredNames":0,"why":null,"freeAt":null,"seconds":0}]}],"requests":10,"seconds":1.5}`)(w, r)
	case q.Get("force") == "1":
		response(200, `{"started":false,"reason":"already_running","forcedIgnored":true,"job":`+jobRunning+`}`)(w, r)
	default:
		response(202, `{"started":true,"job":`+jobQueued+`}`)(w, r)
	}
}

// wantsBody rejects requests whose body is not want.
func wantsBody(h http.HandlerFunc, want string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != want {
			refuse(w, 400, `{"title":"Bad Request","status":400,"detail":"got another body","code":"invalid_body"}`)
			return
		}
		h(w, r)
	}
}

// createWebhook accepts the bodies of the script webhooks.txtar.
func createWebhook(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	const of = `{"url":"https://shop.example/hooks","format":"standard"`
	ids := map[string]string{
		of + `}`: "1",
		of + `,"events":["price.alert"],"alert":{"change":0.1,"hours":48}}`:    "2",
		of + `,"items":["AK-47 | Redline"],"alert":{"above":60,"below":40.5}}`: "3",
		of + `,"events":["price.changed"],"users":["u1"],"minChange":0.05}`:    "4",
	}
	id, known := ids[string(body)]
	if !known {
		refuse(w, 400, `{"title":"Bad Request","status":400,"detail":"got another body: `+strings.ReplaceAll(string(body), `"`, "'")+`","code":"invalid_body"}`)
		return
	}
	response(201, `{"id":"`+id+`","secret":"whsec_SECRET","state":"healthy"}`)(w, r)
}

// patchOperator accepts one body for each kind of change. The only operator is ben.
func patchOperator(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	changed := map[string]string{
		`{"role":"read"}`: `"read","disabled":false`, `{"password":"correct horse battery"}`: `"admin","disabled":false`,
		`{"disabled":true}`: `"read","disabled":true`, `{"disabled":false}`: `"read","disabled":false`,
	}[string(body)]
	switch {
	case r.PathValue("operator") != "ben":
		refuse(w, 404, `{"title":"Not Found","status":404,"detail":"There is no such operator.","code":"operator_not_found"}`)
	case changed == "":
		refuse(w, 400, `{"title":"Bad Request","status":400,"detail":"got another body","code":"invalid_body"}`)
	default:
		response(200, `{"name":"ben","role":`+changed+`,"createdAt":"2026-01-02T03:04:05Z","changedAt":"2026-01-03T03:04:05Z"}`)(w, r)
	}
}

func (f *fakeServer) job(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	body := f.jobs[min(f.jobPolls, len(f.jobs)-1)]
	f.jobPolls++
	polls, onPoll := f.jobPolls, f.onPoll
	f.mu.Unlock()
	if body == jobRemoved {
		refuse(w, 404, jobRemoved)
		return
	}
	response(200, body)(w, r)
	if onPoll != nil {
		onPoll(polls)
	}
}

// item returns one item. Other names simulate errors.
func (f *fakeServer) item(w http.ResponseWriter, r *http.Request) {
	switch r.PathValue("name") {
	case "Sealed Graffiti | A/B\n? ":
		response(200, itemOdd)(w, r)
	case "Broken":
		refuse(w, 500, `{"title":"Internal Server Error","status":500,"detail":"something went wrong","code":"internal","requestId":"r7"}`)
	case "HTML":
		w.WriteHeader(404)
		_, _ = io.WriteString(w, "<html>no such page</html>")
	default:
		refuse(w, 404, `{"title":"Not Found","status":404,"detail":"no such item","code":"item_not_found","requestId":"r2"}`)
	}
}

// searchItems returns two names for every search except "No Such".
func searchItems(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Query().Get("q"), "No Such") {
		response(200, `{"items":[],"nextCursor":null}`)(w, r)
		return
	}
	item := func(name, price, more string) string {
		return `{"appId":730,"marketHashName":"` + name + `","phase":"","currentPrice":` + price + `,"priceUpdatedAt":"2026-01-02T03:04:05Z",` + more + `}`
	}
	redline := item("AK-47 | Redline (Field-Tested)", "28.5", `"status":"ok","held":false,"interval":{"low":26.1,"high":31.02},"average":29,"usedMarkets":4`)
	graffiti := item("Sealed Graffiti | A/B\\n? ", "0.03", `"status":"suspect","held":true`)
	if q := r.URL.Query(); q.Get("held") == "1" {
		if q.Get("sort") != "-price" || q.Get("status") != "suspect" || q.Get("market") != "m" || q.Get("minPrice") != "0.01" || q.Get("maxPrice") != "7" ||
			q.Get("changedSince") != "2026-01-01T00:00:00Z" || q.Get("updatedSince") != "2026-01-02T00:00:00Z" || q.Get("fields") != "interval,average,usedMarkets" {
			refuse(w, 400, `{"title":"Bad Request","status":400,"detail":"wrong filters","code":"invalid_parameters"}`)
			return
		}
		response(200, `{"items":[`+graffiti+`],"nextCursor":null}`)(w, r)
		return
	}
	response(200, `{"items":[`+redline+`,`+graffiti+`],"nextCursor":"more"}`)(w, r)
}

// listUsers returns two users with the prefix "user".
func listUsers(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix("user", r.URL.Query().Get("prefix")) {
		response(200, `{"items":[],"nextCursor":null}`)(w, r)
		return
	}
	response(200, `{"items":[{"userId":"user 1","steamId":null,"displayName":null,"leaderboard":true},{"userId":"user2","steamId":null,"displayName":null,"leaderboard":true}],"nextCursor":"more"}`)(w, r)
}

func (f *fakeServer) sync(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.pushed = append(f.pushed, string(body))
	f.mu.Unlock()
	if r.PathValue("user") == "faulty" {
		refuse(w, 400, `{"title":"Bad Request","status":400,"detail":"the inventory has faults","code":"invalid_body",
			"errors":[{"pointer":"/items/0/assetId","detail":"must not be empty"},{"pointer":"/snapshotAt","detail":"is required"}],"requestId":"r3"}`)
		return
	}
	response(200, `{"added":3,"removed":1,"changed":0,"unchanged":210,"pricedRows":209,"queuedNames":4}`)(w, r)
}

// inventory returns two pages.
func (f *fakeServer) inventory(w http.ResponseWriter, r *http.Request) {
	row := func(id, value, more string) string {
		return `{"assetId":"` + id + `","appId":730,"contextId":"2","marketHashName":"★ Karambit","phase":"","phaseUnknown":false,"classId":"1","instanceId":"0","amount":1,
			"tradable":true,"marketable":true,"estimatedValue":` + value + `,"totalValue":` + value + `,"priceUpdatedAt":null,` + more + `}`
	}
	first, next := row("1", "912.5", `"priceStatus":"thin","interval":{"low":800,"high":1000.5}`), `"two"`
	if r.URL.Query().Get("cursor") == "two" {
		first, next = row("2", "null", `"priceStatus":"noPrice"`), "null"
	}
	response(200, `{"items":[`+first+`],"totalValue":912.5,"currency":"USD","rows":2,"unpricedRows":1,"nextCursor":`+next+`}`)(w, r)
}

const (
	jobRemoved = `{"title":"Not Found","status":404,"detail":"Unknown job 17. Ended jobs are deleted after some days.","code":"job_not_found","requestId":"r9"}`

	jobHead = `{"id":"17","kind":"bulk","forced":false,"requestedBy":"api","createdAt":"2026-01-02T03:04:05Z","retryOf":null,"cancelledItems":0,"deferred":[],`

	jobQueued = jobHead + `"state":"queued","stage":"plan","startedAt":null,"finishedAt":null,"totalItems":0,"pendingItems":0,"updatedItems":0,
		"skippedItems":{"ttl":0,"noSales":0,"budget":0},"noQuoteItems":0,"failedItems":0,"changedItems":0,"lastError":null,"usage":{"requestCount":0,"byProvider":{}}}`
	jobRunning = jobHead + `"state":"running","stage":"estimate","startedAt":"2026-01-02T03:04:05Z","finishedAt":null,"totalItems":30325,"pendingItems":18325,"updatedItems":11690,
		"skippedItems":{"ttl":0,"noSales":310,"budget":0},"noQuoteItems":0,"failedItems":0,"changedItems":10,"lastError":null,"usage":{"requestCount":12,"byProvider":{"sim":12}}}`
	jobApply = jobHead + `"state":"running","stage":"apply","startedAt":"2026-01-02T03:04:05Z","finishedAt":null,"totalItems":30325,"pendingItems":0,"updatedItems":30003,
		"skippedItems":{"ttl":0,"noSales":310,"budget":0},"noQuoteItems":12,"failedItems":0,"changedItems":10,"lastError":null,"usage":{"requestCount":12,"byProvider":{"sim":12}}}`
	jobFinished = jobHead + `"state":"finished","stage":"done","startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:17.5Z","totalItems":30325,"pendingItems":0,"updatedItems":30003,
		"skippedItems":{"ttl":0,"noSales":310,"budget":0},"noQuoteItems":12,"failedItems":0,"changedItems":28000,"outcome":"complete","lastError":null,"usage":{"requestCount":12,"byProvider":{"sim":12}}}`
	jobPartial = jobHead + `"state":"finished","stage":"done","startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:17.5Z","totalItems":30325,"pendingItems":0,"updatedItems":30000,
		"skippedItems":{"ttl":0,"noSales":310,"budget":0},"noQuoteItems":12,"failedItems":3,"changedItems":28000,"outcome":"partial",
		"gaps":{"items":[{"reason":"failed","items":3,"share":0.0001}],"markets":[{"provider":"sim","market":"fjord","reason":"failed","share":1,"detail":"sim: timeout"}]},"lastError":"sim: timeout","usage":{"requestCount":14,"byProvider":{"sim":14}}}`

	statusPartial = `{"status":{"running":false,"jobId":"17","kind":"bulk","forced":false,"state":"finished","stage":"done","startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:17Z","etaSeconds":null,"outcome":"partial",
		"gaps":{"items":[{"reason":"failed","items":3,"share":0.0001},{"reason":"backoff","items":1,"share":0}],"markets":[{"provider":"sim","market":"fjord","reason":"silent","share":1,"detail":"sim: timeout"}]}},
		"pendingItems":0,"updatedItems":30003,"skippedItems":{"ttl":0,"noSales":0,"budget":0},"noQuoteItems":12,"failedItems":3,"totalItems":30325,"lastError":"sim: timeout",
		"usage":{"requestCount":12,"byProvider":{"sim":12}},"missing":{"running":false,"pendingItems":0,"waitingItems":0,"oldestSeconds":0},
		"freshness":{"fresh":30000,"stale":300,"unknown":25,"oldestSeconds":7500}}`
	statusIdle = `{"status":{"running":false,"jobId":"17","kind":"bulk","forced":false,"state":"finished","stage":"done","startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:17Z","etaSeconds":null,"outcome":"complete"},
		"pendingItems":0,"updatedItems":30003,"skippedItems":{"ttl":0,"noSales":310,"budget":0},"noQuoteItems":12,"failedItems":0,"totalItems":30325,"lastError":null,
		"usage":{"requestCount":12,"byProvider":{"sim":10,"pricelist":2}},"missing":{"running":false,"pendingItems":4,"waitingItems":2,"oldestSeconds":9},
		"freshness":{"fresh":30000,"stale":300,"unknown":25,"oldestSeconds":7500}}`

	itemOdd = `{"appId":730,"marketHashName":"Sealed Graffiti | A/B\n? ","phase":"","currentPrice":0.03,"status":"ok","priceUpdatedAt":"2026-01-02T03:04:05Z","currency":"USD",
		"priceCheckedAt":"2026-01-02T03:04:05Z","ageSeconds":185,"estimatedAt":"2026-01-02T03:04:05Z","method":"consensus","methodVersion":2,"average":287.624,"median":0.03,"consensus":0.03,"interval":{"low":0.012,"high":0.075},
		"min":0.025,"max":1438,"spread":1437.975,"markets":2,"usedMarkets":1,"candidatePrice":null,"candidateAt":null,"noSalesSince":null,"retryAt":null,"failures":0,"queued":false,
		"explanation":{"sentences":["No group within a factor of 2 holds more than half of the 2 quotes, so the lowest group decides.","The status is disputed: no majority of the quotes agrees."]},
		"snapshots":[
		{"provider":"sim","market":"north","title":"North","currency":"USD","lowestAsk":0.03,"highestBid":0.02,"sale":null,"listings":12,"sales":3,"salesWindowSeconds":604800,"marketTime":null,
		 "fetchedAt":"2026-01-02T03:04:05Z","price":0.03,"basis":"ask","rate":null,"rateDate":null,"used":true,"reason":""},
		{"provider":"sim","market":"south","title":"South","currency":"USD","lowestAsk":1438,"highestBid":null,"sale":null,"listings":null,"sales":null,"salesWindowSeconds":null,"marketTime":null,
		 "fetchedAt":"2026-01-02T03:04:05Z","price":1438,"basis":"ask","rate":null,"rateDate":null,"level":1.05,"levelled":1369.52381,"used":false,"reason":"outlier","explanation":"it is outside the deciding group of quotes"}]}`
)
