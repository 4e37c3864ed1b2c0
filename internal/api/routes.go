package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"assay/internal/view"
	"assay/internal/wallet/audit"
)

// operation describes a route.
type operation struct {
	method, path string
	access       []string // roles with access besides Admin; nil: public
	serve        handler
	params       []param
	body         *body         // nil: no body
	responses    responseTypes // responses other than problems
	faults       []int         // statuses of problems besides those common to all routes
	summary      string
}

// responseTypes maps a status to a value of the response's type. A nil value means that the
// response has no body.
type responseTypes map[int]any

// local is the role of requests from this machine.
const local = "local"

// operations returns all routes of the API. Each GET route also serves HEAD.
func (s *server) operations() []operation {
	deps, once := &s.Deps, newOnce(&s.Deps)
	jobs, providers, items, feed := jobHandlers{deps}, providerHandlers{deps}, itemHandlers{deps}, newFeedHandlers(deps, s.meter.streams)
	users, inventories, feeRule := userHandlers{deps}, inventoryHandlers{deps}, feeHandlers{deps}
	hooks := webhookHandlers{deps}
	wallets, listings, trades := walletHandlers{deps, once}, listingHandlers{deps, once}, tradeHandlers{deps, once}
	keys := keyHandlers{deps}
	people := operatorHandlers{deps}
	market, platform := []string{Market}, []string{Platform}
	admin := []string{}
	prices, metrics := []string{Market, Platform}, []string{local}
	page := []param{cursor, limit}
	key := []param{namePath, nameQuery, appID, phase}
	reads, finds, changes := []int{500, 503}, []int{404, 500, 503}, []int{404, 409, 500, 503}
	converts, findsConverts := []int{422, 500, 503}, []int{404, 422, 500, 503}
	const mp, job = "/api/market-prices", "/api/market-prices/jobs/{id}"
	const ledger = "/api/functions/admin/wallet-ledger/{userId}"
	const webhook = "/api/webhooks/{id}"
	const fees = "/api/functions/admin/payment-fee-rules"
	const provider, user = "/api/market-prices/providers/{provider}", "/api/inventory/{userId}"
	return []operation{
		{"POST", mp + "/refresh", market, jobs.startRefresh, []param{force, dryRun}, nil, responseTypes{202: started{}, 200: oneOf{reasonRunning: alreadyRunning{}, reasonDryRun: dryRunResponse{}}}, reads, "Start a refresh of all prices, or show what it would do."},
		{"GET", mp + "/status", market, jobs.status, nil, nil, responseTypes{200: view.Status{}}, reads, "The running refresh, and how fresh prices are."},
		{"GET", mp + "/provider-debug", market, providers.providerDebug, nil, nil, responseTypes{200: view.ProvidersDebug{}}, reads, "State of providers and markets, from recorded requests only."},
		{"GET", mp + "/job-debug", market, jobs.jobDebug, nil, nil, responseTypes{200: view.JobDebug{}}, reads, "Queues, workers, schedules, last jobs and why items failed."},
		{"GET", mp + "/jobs", market, jobs.jobs, with(page, jobKind), nil, responseTypes{200: view.Page[view.Job]{}}, reads, "List jobs, newest first."},
		{"GET", job, market, jobs.job, []param{jobID}, nil, responseTypes{200: view.Job{}}, finds, "A job."},
		{"GET", job + "/items", market, jobs.jobItems, with(page, jobID, itemState, itemCause, search), nil, responseTypes{200: view.Page[view.JobItem]{}}, finds, "List a job's items."},
		{"POST", job + "/cancel", market, jobs.cancelJob, []param{jobID}, nil, responseTypes{200: view.Job{}}, changes, "Cancel a job."},
		{"POST", job + "/retry-failed", market, jobs.retryFailed, []param{jobID, retryCause}, nil, responseTypes{202: started{}, 200: alreadyRunning{}}, changes, "Start a job of the items that failed in this one."},
		{"POST", provider + "/pause", market, providers.controlProvider(s.Engine.PauseProvider), []param{providerName}, nil, responseTypes{204: nil}, finds, "Send no more requests to a provider until it is resumed."},
		{"POST", provider + "/resume", market, providers.controlProvider(s.Engine.ResumeProvider), []param{providerName}, nil, responseTypes{204: nil}, finds, "Resume a paused provider. This also discards the quota that its headers reported."},
		{"POST", provider + "/accept", market, providers.acceptProvider, []param{providerName, marketKey}, nil, responseTypes{204: nil}, changes, "End the quarantine of a provider's markets."},
		{"POST", mp + "/items/{name}/accept", market, items.acceptItem, key, nil, responseTypes{200: view.ItemDetail{}}, changes, "Accept the price of an item that was held back."},
		{"POST", mp + "/items/refresh", market, jobs.refreshItems, nil, &body{limit: maxBody, like: refreshBody{}}, responseTypes{202: started{}, 200: alreadyRunning{}}, finds, "Refresh up to 500 items now."},
		{"GET", "/api/prices/items", prices, items.items, with(page, appID, search, priceStatus, onMarket, priceFrom, priceTo, changedSince, updatedSince, held, minDayChange, itemSort, fields, inCurrency), nil, responseTypes{200: view.PricedItems{}}, converts, "List items with their prices."},
		{"GET", "/api/prices/items/{name}", prices, items.item, with(key, inCurrency), nil, responseTypes{200: view.ItemDetail{}}, findsConverts, "An item's price, and every market's quote behind it."},
		{"GET", "/api/prices/items/{name}/history", prices, items.history, with(page, slices.Concat(key, []param{historyFrom, historyTo, historyStep, historyMarket, thenCurrency})...), nil, responseTypes{200: view.History{}}, findsConverts, "The history of an item's price, or of a market's quotes, as points or candles."},
		{"GET", "/api/prices/items/{name}/figures", prices, items.figures, with(key, inCurrency), nil, responseTypes{200: view.ItemFigures{}}, findsConverts, "An item's prices over the last day, week, month and quarter: mean, median, range, change and volatility."},
		{"GET", "/api/prices/items/{name}/at", prices, items.priceAt, with(key, pastTime, explained, thenCurrency), nil, responseTypes{200: view.PastPrice{}}, []int{404, 410, 422, 500, 503}, "An item's price at a time in the past, with its explanation on request."},
		{"GET", "/api/prices/snapshot/manifest", prices, feed.manifest, []param{anyAppID, inCurrency}, nil, responseTypes{200: view.Manifest{}}, converts, "The number of the last price change, and how many prices an export has."},
		{"GET", "/api/prices/snapshot.json", prices, feed.export(false), []param{anyAppID, exportFields, inCurrency}, nil, responseTypes{200: exported{}, 304: nil}, converts, "Export all prices as one JSON object."},
		{"GET", "/api/prices/snapshot.ndjson", prices, feed.export(true), []param{anyAppID, exportFields, inCurrency}, nil, responseTypes{200: media(ndjsonType), 304: nil}, converts, "Export all prices, one JSON object per line."},
		{"GET", "/api/prices/changes", prices, feed.changes, []param{since, waitSeconds, limit, fields, inCurrency}, nil, responseTypes{200: view.Changes{}}, []int{410, 422, 500, 503}, "List price changes after a change number, oldest first."},
		{"GET", "/api/prices/stream", prices, feed.stream, []param{streamSince, fields, eventCurrency}, nil, responseTypes{200: media(streamType)}, []int{410, 422, 500, 503}, "Receive price changes and other events as they happen (server-sent events)."},
		{"GET", "/api/events", prices, feed.events, []param{after, waitSeconds, limit, fields, eventCurrency}, nil, responseTypes{200: view.Events{}}, []int{410, 422, 500, 503}, "List events after an event number, oldest first."},
		{"GET", "/api/webhooks", admin, hooks.webhooks, nil, nil, responseTypes{200: view.Page[view.Webhook]{}}, reads, "List webhooks and their health."},
		{"POST", "/api/webhooks", admin, hooks.createWebhook, nil, &body{limit: maxBody, like: webhookBody{}}, responseTypes{201: view.NewWebhook{}}, []int{409, 500, 503}, "Send events to an address from now on."},
		{"GET", webhook, admin, hooks.webhook, []param{webhookID}, nil, responseTypes{200: view.Webhook{}}, finds, "A webhook and its health."},
		{"PATCH", webhook, admin, hooks.changeWebhook, []param{webhookID}, &body{limit: maxBody, like: webhookPatch{}}, responseTypes{200: view.Webhook{}}, finds, "Change, enable or disable a webhook."},
		{"DELETE", webhook, admin, hooks.deleteWebhook, []param{webhookID}, nil, responseTypes{204: nil}, finds, "Delete a webhook."},
		{"POST", webhook + "/rotate", admin, hooks.rotateWebhook, []param{webhookID, keepHours}, nil, responseTypes{200: view.NewWebhook{}}, finds, "Replace the secret of a webhook. The older one stays valid for some hours."},
		{"POST", webhook + "/test", admin, hooks.testWebhook, []param{webhookID}, nil, responseTypes{200: view.WebhookAttempt{}}, finds, "Send a test message to a webhook."},
		{"GET", webhook + "/deliveries", admin, hooks.deliveries, with(page, webhookID), nil, responseTypes{200: view.Page[view.WebhookDelivery]{}}, finds, "List recent messages of a webhook, newest first."},
		{"POST", webhook + "/deliveries/{number}/resend", admin, hooks.resend, []param{webhookID, deliveryNumber}, nil, responseTypes{200: view.WebhookAttempt{}}, changes, "Send a recent message again, with the same id."},
		{"POST", "/api/prices/lookup", prices, items.lookup, []param{fields, inCurrency}, &body{limit: maxBody, like: lookupBody{}}, responseTypes{200: view.Lookup{}}, converts, "Prices of up to 1,000 items, in their order."},
		{"POST", "/api/prices/quotes", prices, items.quotes, []param{inCurrency}, &body{limit: maxBody, like: quotesBody{}}, responseTypes{200: view.Quotes{}}, converts, "Every market's quote of up to 1,000 items, with best ask, best bid, spread and liquidity."},
		{"GET", "/api/users", platform, users.users, with(page, userPrefix), nil, responseTypes{200: view.Page[view.User]{}}, reads, "List users, by their ids."},
		{"GET", "/api/users/{userId}", platform, users.user, []param{userID}, nil, responseTypes{200: view.User{}}, finds, "A user."},
		{"PUT", "/api/users/{userId}", platform, users.putUser, []param{userID}, &body{limit: maxBody, like: userBody{}}, responseTypes{200: view.User{}}, []int{409, 500, 503}, "Create or replace a user."},
		{"DELETE", "/api/users/{userId}", platform, users.deleteUser, []param{userID}, nil, responseTypes{204: nil}, changes, "Delete a user. The ledger, trades and listings keep the id."},
		{"POST", user + "/sync", platform, inventories.syncInventory, []param{userID, syncSource, pullApp, pullFrom}, &body{limit: maxPush, like: pushBody{}, optional: true}, responseTypes{200: view.SyncResult{}}, []int{404, 409, 422, 500, 503}, "Sync a user's whole inventory of one game and context, from the body or from Steam."},
		{"GET", user, platform, inventories.inventory, with(page, userID, anyAppID, fields, inCurrency), nil, responseTypes{200: view.Inventory{}}, findsConverts, "List a user's inventory with its value."},
		{"GET", user + "/values", platform, inventories.values, with(page, userID, valuesFrom, valuesTo, inCurrency), nil, responseTypes{200: view.InventoryValues{}}, findsConverts, "The value of a user's inventory at the end of each day."},
		{"POST", ledger + "/entries", admin, wallets.postEntries, []param{userID}, &body{limit: maxBody, like: entryBody{}, key: keyRequired, money: true}, responseTypes{201: view.WalletTransaction{}}, []int{404, 409, 500, 503}, "Post a deposit, withdrawal or correction to a user's wallet."},
		{"GET", ledger + "/entries", admin, wallets.walletEntries, with(page, accountID, currency), nil, responseTypes{200: view.Page[view.WalletEntry]{}}, finds, "List the entries of a user's wallet, the newest first in each currency."},
		{"GET", ledger + "/verify", admin, wallets.verifyWallet, []param{accountID, checkpoint}, nil, responseTypes{200: audit.Report{}}, finds, "Verify a user's wallet. It repairs nothing."},
		{"GET", ledger + "/balance", admin, wallets.walletBalance, []param{accountID}, nil, responseTypes{200: view.Wallet{}}, finds, "Balances of a user, available and held."},
		{"GET", fees, admin, feeRule.feeRules, []param{feeVersionShown, feeVersionBefore}, nil, responseTypes{200: view.FeeRules{}}, finds, "The rules of the active or a given version, and a list of versions."},
		{"POST", fees + "/refresh", admin, feeRule.refreshFees, []param{dryRun, allowLarge}, nil, responseTypes{200: view.FeeChange{}}, []int{409, 422, 500, 502, 503}, "Load the fee rules from PAYMENT_FEE_RULES and activate them as the next version."},
		{"POST", fees + "/rollback", admin, feeRule.rollbackFees, []param{feeVersionAgain, dryRun}, nil, responseTypes{200: view.FeeChange{}}, changes, "Activate an earlier version of the fee rules again, as the next version."},
		{"POST", fees + "/quote", admin, feeRule.quoteFee, nil, &body{limit: maxBody, like: quoteBody{}}, responseTypes{200: view.FeeQuote{}}, []int{404, 422, 500, 503}, "The fee of a payment, its rule and the computation."},
		{"POST", "/api/listings", platform, listings.createListing, nil, &body{limit: maxPush, like: listingBody{}, key: keyOptional}, responseTypes{201: view.NewListing{}}, changes, "Sync a seller's inventory and list an asset of it."},
		{"POST", "/api/listings/batch", platform, listings.createListings, nil, &body{limit: maxPush, like: listingsBody{}, key: keyOptional}, responseTypes{200: offeredList{}}, changes, "Sync a seller's inventory once and list up to 500 assets of it, with one result for each."},
		{"POST", "/api/listings/cancel", platform, listings.cancelListings, nil, &body{limit: maxBody, like: cancelBody{}}, responseTypes{200: withdrawnList{}}, []int{500, 503}, "Cancel up to 500 listings, with one result for each."},
		{"GET", "/api/listings", platform, listings.listings, with(page, ofUser, itemName, anyAppID, phase, listingState, minPrice, maxPrice, currency, createdFrom, createdTo), nil, responseTypes{200: view.Page[view.Listing]{}}, reads, "List listings, newest first."},
		{"GET", "/api/listings/{id}", platform, listings.listing, []param{listingID}, nil, responseTypes{200: view.Listing{}}, finds, "A listing."},
		{"DELETE", "/api/listings/{id}", platform, listings.cancelListing, []param{listingID}, nil, responseTypes{200: view.Listing{}}, changes, "Cancel a listing."},
		{"PATCH", "/api/listings/{id}", platform, listings.repriceListing, []param{listingID}, &body{limit: maxBody, like: priceBody{}}, responseTypes{200: view.Listing{}}, changes, "Change the price of an active listing."},
		{"POST", "/api/listings/{id}/purchase", platform, trades.purchase, []param{listingID}, &body{limit: maxBody, like: purchaseBody{}, key: keyRequired, money: true}, responseTypes{201: view.Trade{}}, changes, "Sell a listing to a buyer."},
		{"GET", "/api/trades", platform, trades.trades, with(page, ofUser, anyAppID, tradeState, createdFrom, createdTo), nil, responseTypes{200: view.Page[view.Trade]{}}, reads, "List trades, newest first."},
		{"GET", "/api/trades/{id}", platform, trades.trade, []param{tradeID}, nil, responseTypes{200: view.Trade{}}, finds, "A trade."},
		{"POST", "/api/trades/{id}/complete", platform, trades.moveTrade(s.Market.Complete), []param{tradeID}, nil, responseTypes{200: view.Trade{}}, changes, "Complete a trade after the asset was delivered."},
		{"POST", "/api/trades/{id}/reverse", platform, trades.moveTrade(s.Market.Reverse), []param{tradeID}, nil, responseTypes{200: view.Trade{}}, changes, "Reverse a trade and refund the buyer."},
		{"GET", "/api/keys", admin, keys.keys, page, nil, responseTypes{200: view.Page[view.APIKey]{}}, reads, "List API keys by name."},
		{"POST", "/api/keys", admin, keys.createKey, nil, &body{limit: maxBody, like: apiKeyBody{}}, responseTypes{201: view.NewAPIKey{}}, []int{409, 500, 503}, "Create an API key. Only this response shows its secret."},
		{"GET", "/api/keys/{key}", admin, keys.key, []param{keyName}, nil, responseTypes{200: view.APIKey{}}, finds, "An API key."},
		{"POST", "/api/keys/{key}/rotate", admin, keys.rotateKey, []param{keyName, keepHours}, nil, responseTypes{200: view.NewAPIKey{}}, finds, "Give an API key a new secret."},
		{"DELETE", "/api/keys/{key}", admin, keys.revokeKey, []param{keyName}, nil, responseTypes{204: nil}, finds, "Revoke an API key."},
		{"GET", "/api/operators", admin, people.operators, nil, nil, responseTypes{200: view.Page[view.Operator]{}}, reads, "List the operators of the operator's page."},
		{"POST", "/api/operators", admin, people.createOperator, nil, &body{limit: maxBody, like: operatorBody{}}, responseTypes{201: view.Operator{}}, []int{409, 500, 503}, "Add an operator with a password."},
		{"GET", "/api/operators/{operator}", admin, people.operator, []param{operatorName}, nil, responseTypes{200: view.Operator{}}, finds, "An operator."},
		{"PATCH", "/api/operators/{operator}", admin, people.changeOperator, []param{operatorName}, &body{limit: maxBody, like: operatorPatch{}}, responseTypes{200: view.Operator{}}, finds, "Change the role or the password of an operator, or disable or enable it."},
		{"GET", "/api/audit", admin, keys.auditLog, with(page, auditActor), nil, responseTypes{200: view.Page[view.AuditEntry]{}}, reads, "List requests that changed something, newest first."},
		{"GET", "/api/community/top-traders", nil, s.topTraders, []param{period, rankBy, topLimit}, nil, responseTypes{200: view.TopTraders{}, 304: nil}, reads, "The top traders."},
		{"GET", "/api/health", nil, s.health, nil, nil, responseTypes{200: view.Health{}, 503: view.Health{}}, nil, "Whether the server is healthy."},
		{"GET", "/metrics", metrics, s.metrics, nil, nil, responseTypes{200: media("text/plain")}, nil, "Metrics for Prometheus."},
		{"GET", "/openapi.json", nil, s.openapiDocument, nil, nil, responseTypes{200: media("application/json"), 304: nil}, nil, "The OpenAPI document of this API."},
		{"GET", "/docs", nil, s.docs, nil, nil, responseTypes{200: media("text/html"), 304: nil}, nil, "The documentation of this API as a page."},
	}
}

// with returns a new list: more, followed by params.
func with(params []param, more ...param) []param { return slices.Concat(more, params) }

// routeTable finds operations by path. It matches escaped paths segment by segment. Unlike
// http.ServeMux it does not clean or redirect paths, because item names can contain slashes
// and dots.
type routeTable struct {
	operations []operation
	segments   [][]string // path segments of each operation
}

func newRouteTable(operations []operation) routeTable {
	t := routeTable{operations: operations}
	for _, op := range operations {
		t.segments = append(t.segments, strings.Split(op.path, "/"))
	}
	return t
}

// owns reports whether a path belongs to the API. Unknown paths below /api belong to it too.
func (t *routeTable) owns(escapedPath string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(escapedPath, "/"), "/")
	if first == "api" {
		return true
	}
	return slices.ContainsFunc(t.operations, func(op operation) bool { return op.path == escapedPath })
}

// find returns the operation of a request and the values of its path parameters. If the
// path exists but not with this method, op is nil and allow lists the allowed methods. If
// the path is unknown, op and allow are nil.
func (t *routeTable) find(method, escapedPath string) (op *operation, values map[string]string, allow []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	parts := strings.Split(escapedPath, "/")
	for i := range t.operations {
		found, ok := match(t.segments[i], parts)
		if !ok {
			continue
		}
		if t.operations[i].method == method {
			return &t.operations[i], found, nil
		}
		allow = append(allow, t.operations[i].method)
		if t.operations[i].method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	return nil, nil, allow
}

// match compares a path with a pattern. It returns the unescaped values of the pattern's
// parameters.
func match(pattern, parts []string) (map[string]string, bool) {
	if len(pattern) != len(parts) {
		return nil, false
	}
	var values map[string]string // allocated on demand: most patterns do not match
	for i, segment := range pattern {
		name, isParam := paramName(segment)
		if !isParam {
			if parts[i] != segment {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(parts[i])
		if err != nil {
			return nil, false
		}
		if values == nil {
			values = map[string]string{}
		}
		values[name] = value
	}
	return values, true
}

// paramName returns the name in a segment of the form "{name}".
func paramName(segment string) (string, bool) {
	if !strings.HasPrefix(segment, "{") {
		return "", false
	}
	return segment[1 : len(segment)-1], true
}
