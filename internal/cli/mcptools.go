package cli

import (
	"cmp"
	"maps"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolLimit is the default number of results of a tool. It is small, because a model reads all
// results.
const toolLimit = 20

// The arguments of the tools. The tags are the descriptions that a model reads.
type (
	noArgs   struct{}
	itemArgs struct {
		Name  string `json:"name" jsonschema:"exact market hash name"`
		AppID int32  `json:"appId,omitempty" jsonschema:"Steam app ID of the game; 730 if absent"`
		Phase string `json:"phase,omitempty" jsonschema:"phase of a Doppler, such as Ruby or Phase 2"`
	}
	currencyArgs struct {
		Currency string `json:"currency,omitempty" jsonschema:"ISO 4217 code of all amounts, converted by the exchange rates in force"`
	}
	listArgs struct {
		Limit  int32  `json:"limit,omitempty" jsonschema:"maximum number of results, 1 to 1000; 20 if absent"`
		Cursor string `json:"cursor,omitempty" jsonschema:"nextCursor of the previous page"`
	}
	searchArgs struct {
		Words        string `json:"words,omitempty" jsonschema:"words that the name contains, in any order and case"`
		AppID        int32  `json:"appId,omitempty" jsonschema:"Steam app ID of the game; 730 if absent"`
		Status       string `json:"status,omitempty" jsonschema:"ok, thin, suspect, disputed, stale or noPrice"`
		Market       string `json:"market,omitempty" jsonschema:"market that offers or has sold the item, as key or provider/key"`
		MinPrice     string `json:"minPrice,omitempty" jsonschema:"lowest price, such as 12.5"`
		MaxPrice     string `json:"maxPrice,omitempty" jsonschema:"highest price"`
		ChangedSince string `json:"changedSince,omitempty" jsonschema:"RFC 3339 time: prices that changed since then"`
		UpdatedSince string `json:"updatedSince,omitempty" jsonschema:"RFC 3339 time: prices that were confirmed since then"`
		Sort         string `json:"sort,omitempty" jsonschema:"name, price, status, changed or dayChange; a leading minus reverses the order"`
		currencyArgs
		listArgs
	}
	namesArgs struct {
		Names []string   `json:"names,omitempty" jsonschema:"exact market hash names of items without a phase; with items, up to 1000 together"`
		Items []itemArgs `json:"items,omitempty" jsonschema:"items with a phase or of another game; results follow those of names"`
		AppID int32      `json:"appId,omitempty" jsonschema:"Steam app ID of the game; 730 if absent"`
		currencyArgs
	}
	quotesArgs struct {
		namesArgs
		Markets []string `json:"markets,omitempty" jsonschema:"only these markets, as key or provider/key"`
	}
	explainArgs struct {
		itemArgs
		currencyArgs
	}
	historyArgs struct {
		itemArgs
		currencyArgs
		listArgs
		From     string `json:"from,omitempty" jsonschema:"RFC 3339 time of the start"`
		To       string `json:"to,omitempty" jsonschema:"RFC 3339 time of the end; now if absent"`
		Interval string `json:"interval,omitempty" jsonschema:"candles of 5m, 1h or 1d; points if absent"`
		Market   string `json:"market,omitempty" jsonschema:"quotes of this market, as key or provider/key, instead of the price"`
	}
	atArgs struct {
		itemArgs
		currencyArgs
		Time    string `json:"time" jsonschema:"RFC 3339 time"`
		Explain bool   `json:"explain,omitempty" jsonschema:"also explain the price"`
	}
	changesArgs struct {
		currencyArgs
		Since string `json:"since,omitempty" jsonschema:"list changes after this number: next from the previous page, or change from price_feed"`
		Limit int32  `json:"limit,omitempty" jsonschema:"maximum number of results, 1 to 1000; 20 if absent"`
	}
	runsArgs struct {
		listArgs
		Kind string `json:"kind,omitempty" jsonschema:"bulk, missing or items"`
	}
	runArgs struct {
		ID string `json:"id" jsonschema:"id of the run"`
	}
	runItemsArgs struct {
		runArgs
		listArgs
		State string `json:"state,omitempty" jsonschema:"pending, updated, skipped, noQuote, failed or cancelled"`
	}
	refreshArgs struct {
		Force  bool `json:"force,omitempty" jsonschema:"also refresh prices that are still fresh"`
		DryRun bool `json:"dryRun,omitempty" jsonschema:"only return what a run would do"`
	}
	providerArgs struct {
		Provider string `json:"provider" jsonschema:"name of the provider"`
	}
	acceptArgs struct {
		providerArgs
		Market string `json:"market,omitempty" jsonschema:"only this market; all in quarantine if absent"`
	}
)

// request returns a request for an item. It appends part to the path and adds the names and values
// in more to the query.
func (a itemArgs) request(part string, more ...string) request {
	r := itemRequest(a.AppID, a.Name, a.Phase)
	r.path += part
	maps.Copy(r.query, filter(more...))
	return r
}

func (a listArgs) pairs() []string {
	return []string{"limit", unlessZero(cmp.Or(a.Limit, toolLimit)), "cursor", a.Cursor}
}

// body returns the body of a request for several items.
func (a namesArgs) body() map[string]any {
	items := []map[string]any{}
	for _, name := range a.Names {
		items = append(items, map[string]any{"marketHashName": name, "appId": cmp.Or(a.AppID, 730)})
	}
	for _, i := range a.Items {
		items = append(items, map[string]any{"marketHashName": i.Name, "appId": cmp.Or(i.AppID, a.AppID, 730), "phase": i.Phase})
	}
	return map[string]any{"items": items}
}

func addReadTools(server *mcp.Server, api *client) {
	addTool(server, api, tool{name: "search_items", title: "Search items", does: "List items of a game with their prices, filtered and sorted. Use it to find exact names."}, func(a searchArgs) request {
		q := filter(append(a.pairs(), "q", a.Words, "appId", unlessZero(a.AppID), "status", a.Status, "market", a.Market, "minPrice", a.MinPrice, "maxPrice", a.MaxPrice,
			"changedSince", a.ChangedSince, "updatedSince", a.UpdatedSince, "sort", a.Sort, "currency", a.Currency, "fields", allFields())...)
		return request{path: itemsPath, query: q}
	})
	addTool(server, api, tool{name: "explain_price", title: "Explain a price", does: "The price of one item with its explanation, age and reliability, and the quote of every market."}, func(a explainArgs) request {
		return a.request("", "currency", a.Currency)
	})
	addTool(server, api, tool{name: "lookup_prices", title: "Look up prices", does: "Prices of up to 1,000 items by their exact names, and by phase in items."}, func(a namesArgs) request {
		return request{method: http.MethodPost, path: "/api/prices/lookup", query: filter("currency", a.Currency), body: a.body()}
	})
	addTool(server, api, tool{name: "market_quotes", title: "Compare markets", does: "Every market's quote of items, by names or with a phase in items: best ask and best bid, spread after fees, listings, sales and liquidity."}, func(a quotesArgs) request {
		body := a.body()
		if a.Markets != nil {
			body["markets"] = a.Markets
		}
		return request{method: http.MethodPost, path: "/api/prices/quotes", query: filter("currency", a.Currency), body: body}
	})
	addTool(server, api, tool{name: "price_history", title: "Price history", does: "The price of an item over time, or the quotes of one market, as points or candles."}, func(a historyArgs) request {
		return a.request("/history", append(a.pairs(), "from", a.From, "to", a.To, "interval", a.Interval, "market", a.Market, "currency", a.Currency)...)
	})
	addTool(server, api, tool{name: "price_figures", title: "Price figures", does: "Mean, median, low, high, change and volatility of an item's price in 1, 7, 30 and 90 days."}, func(a explainArgs) request {
		return a.request("/figures", "currency", a.Currency)
	})
	addTool(server, api, tool{name: "price_at", title: "Price at a time", does: "The price of an item at a time, optionally with its explanation."}, func(a atArgs) request {
		return a.request("/at", "time", a.Time, "explain", ifSet(a.Explain), "currency", a.Currency)
	})
	addTool(server, api, tool{name: "price_feed", title: "Newest change number", does: "The number of the last price change, and how many items have a price."}, func(a currencyArgs) request {
		return request{path: "/api/prices/snapshot/manifest", query: filter("currency", a.Currency)}
	})
	addTool(server, api, tool{name: "price_changes", title: "Price changes", does: "Price changes after a number, oldest first."}, func(a changesArgs) request {
		return request{path: "/api/prices/changes", query: filter("since", a.Since, "limit", unlessZero(cmp.Or(a.Limit, toolLimit)), "currency", a.Currency)}
	})
	addTool(server, api, tool{name: "status", title: "Status and freshness", does: "The running or last refresh, the queue of items without a price, and how fresh all prices are."}, func(noArgs) request {
		return statusRequest()
	})
	addTool(server, api, tool{name: "providers", title: "Providers", does: "Providers and their markets: health, budgets, quarantines, last errors and requests. It sends no request to a provider."}, func(noArgs) request {
		return providersRequest()
	})
	addTool(server, api, tool{name: "runs", title: "Runs", does: "The last refreshes, newest first, with their counts and outcomes."}, func(a runsArgs) request {
		return request{path: marketPrices + "/jobs", query: filter(append(a.pairs(), "kind", a.Kind)...)}
	})
	addTool(server, api, tool{name: "run_items", title: "Items of a run", does: "The items of a run with their states, errors and prices before and after."}, func(a runItemsArgs) request {
		r := jobRequest(a.ID)
		r.path += "/items"
		r.query = filter(append(a.pairs(), "state", a.State)...)
		return r
	})
}

func addWriteTools(server *mcp.Server, api *client) {
	addTool(server, api, tool{name: "start_refresh", title: "Start a refresh", does: "Start a refresh of all prices that are due, or return what it would do.", writes: true}, func(a refreshArgs) request {
		return refreshRequest(a.Force, a.DryRun)
	})
	addTool(server, api, tool{name: "cancel_run", title: "Cancel a run", does: "Cancel the rest of a run. Prices that are already updated stay.", writes: true}, func(a runArgs) request {
		r := jobRequest(a.ID)
		r.method, r.path = http.MethodPost, r.path+"/cancel"
		return r
	})
	control := func(verb, does string) {
		addTool(server, api, tool{name: verb + "_provider", title: does, does: does + ".", writes: true, empty: true}, func(a providerArgs) request {
			return providerAction(a.Provider, verb, nil)
		})
	}
	control("pause", "Send no more requests to a provider until it is resumed")
	control("resume", "Resume a paused provider")
	addTool(server, api, tool{name: "accept_provider", title: "End a quarantine", does: "End the quarantine of a provider's markets, after a person has checked the response.", writes: true, empty: true}, func(a acceptArgs) request {
		return providerAction(a.Provider, "accept", filter("market", a.Market))
	})
	addTool(server, api, tool{name: "accept_price", title: "Accept a held price", does: "Make the held candidate price of an item its price.", writes: true}, func(a itemArgs) request {
		r := a.request("")
		r.method, r.path = http.MethodPost, marketPrices+"/items/"+segment(a.Name)+"/accept"
		return r
	})
}
