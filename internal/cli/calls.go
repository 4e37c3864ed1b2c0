package cli

import (
	"net/http"
	"net/url"
	"strconv"

	"assay/internal/config"
	"assay/internal/view"
)

// These are paths of the API.
const (
	marketPrices = "/api/market-prices"
	itemsPath    = "/api/prices/items"
)

// filter builds a query from alternating names and values. It omits empty values.
func filter(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// unlessZero formats a number for filter. It returns "" for 0.
func unlessZero[T int32 | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// ifSet formats a flag for filter. It returns "" if the flag is not set.
func ifSet(flag bool) string {
	if flag {
		return "1"
	}
	return ""
}

// startedRun is the response to a request for a refresh.
type startedRun struct {
	Started       bool     `json:"started"`
	Reason        string   `json:"reason,omitzero"`
	ForcedIgnored bool     `json:"forcedIgnored"`
	Job           view.Job `json:"job"`
}

func refreshRequest(forced, dryRun bool) request {
	return request{
		method: http.MethodPost, path: marketPrices + "/refresh", as: config.RoleMarket,
		query: filter("force", ifSet(forced), "dryRun", ifSet(dryRun)),
	}
}

func jobRequest(id string) request {
	return request{path: marketPrices + "/jobs/" + segment(id), as: config.RoleMarket}
}

func statusRequest() request { return request{path: marketPrices + "/status", as: config.RoleMarket} }

func providersRequest() request {
	return request{path: marketPrices + "/provider-debug", as: config.RoleMarket}
}

func providerAction(name, action string, query url.Values) request {
	return request{method: http.MethodPost, path: marketPrices + "/providers/" + segment(name) + "/" + action, query: query, as: config.RoleMarket}
}

func itemRequest(appID int32, name, phase string) request {
	return request{
		path: itemsPath + "/" + segment(name), as: config.RoleMarket,
		query: filter("appId", unlessZero(appID), "phase", phase),
	}
}

func userRequest(method, id string) request {
	return request{method: method, path: "/api/users/" + segment(id), as: config.RolePlatform}
}

// syncRequest returns a request that pushes body as a user's inventory. If body is nil, the
// server reads the inventory from Steam.
func syncRequest(userID string, body any) request {
	return request{
		method: http.MethodPost, path: "/api/inventory/" + segment(userID) + "/sync", as: config.RolePlatform, body: body, timeout: syncTimeout,
	}
}

func walletRequest(userID, of string) request {
	return request{path: "/api/functions/admin/wallet-ledger/" + segment(userID) + of, as: config.RoleAdmin}
}
