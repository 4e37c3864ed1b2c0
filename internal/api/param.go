package api

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
)

// param is a parameter of a path or query. Handlers get its checked value as text.
type param struct {
	name   string
	in     string // path or query
	doc    string
	preset string // default value; empty: none
	schema schema
	check  func(value string) error
	ofUser bool // true for a user id whose reserved values are refused with 422
}

// The parameters of all routes.
var (
	limit      = number("limit", 1, 1000, "100", "Maximum number of items to list.")
	cursor     = text("cursor", 1024, "nextCursor of the previous page.")
	appID      = number("appId", 1, 1<<31-1, "730", "Steam app ID of the game.")
	anyAppID   = number("appId", 1, 1<<31-1, "", "Steam app ID of the game. Default: all games.")
	search     = text("q", catalog.MaxName, "Words that the name must contain, in any order and any ASCII case; at most 16.")
	userPrefix = text("prefix", user.MaxID, "Only users whose ids begin with this prefix, byte for byte.")
	force      = flag("force", "Ignore the TTL and the no-sales pause.")
	dryRun     = flag("dryRun", "Change nothing and return what the request would do.")

	allowLarge       = flag("allowLargeChange", "Allow fees to change by more than half, or by more than five percent of the amount.")
	feeVersionShown  = number("version", 1, 1<<62, "", "Version to return. Default: the active one.")
	feeVersionBefore = number("before", 1, 1<<62, "", "List the versions below this one. Default: from the newest.")
	feeVersionAgain  = number("version", 1, 1<<62, "", "Version to activate again. Required.")

	priceStatus  = choice("status", "", "Only items whose price has this status now.", view.PriceStatuses()...)
	onMarket     = text("market", 256, "Only items that this market offers or has sold. The value is the key of the market or provider/key, such as steam or skinport/skinport. Send provider/key if several providers carry the market.")
	priceFrom    = amount("minPrice", 0, "Only items with at least this price, a decimal number of `currency`.")
	priceTo      = amount("maxPrice", 1, "Only items with at most this price, a decimal number of `currency`.")
	changedSince = moment("changedSince", "Only items whose price changed at this time or later.")
	updatedSince = moment("updatedSince", "Only items whose price was confirmed at this time or later, changed or not.")
	held         = flag("held", "Only items with a suspicious new price that waits for confirmation.")
	minDayChange = amount("minDayChange", 1, "Only items whose price rose or fell by at least this part in the last 24 hours: 0.1 is 10 %.")
	itemSort     = choice("sort", "name", "Order of the items. A leading minus reverses the order: from Z to A, highest price, worst status, latest change or largest rise in 24 hours first. Equal items are ordered by name.", view.ItemSorts()...)

	since       = number("since", 0, 1<<62, "0", "Number of the last change that the client has: next of the previous page, or the change number of a snapshot.")
	waitSeconds = number("wait", 0, maxWaitSeconds, "0", "Seconds to wait for a change if there is none yet.")

	after       = number("after", 0, 1<<62, "0", "Number of the last event that the client has: next of the previous page.")
	streamSince = number("since", 0, 1<<62, "", "Number of the last event that the client has. The header Last-Event-ID overrides it. Default: events from now on.")

	historyFrom   = moment("from", "Start of the period, not after `to` and not in the future. Default: the first price.")
	historyTo     = moment("to", "End of the period, exclusive. Default, and at the latest: now.")
	historyStep   = choice("interval", "", "Length of a candle. Default: points instead of candles.", "5m", "1h", "1d")
	historyMarket = text("market", 256, "The quotes of this market instead of the price: its key or provider/key, such as steam or skinport/skinport. Send provider/key if several providers carry the market.")
	pastTime      = moment("time", "Time of the price, not in the future. Default: now.")
	explained     = flag("explain", "Add the explanation of the price, with the quotes, rates and levels of that time.")

	keepHours  = number("keepHours", 0, 24*30, "24", "Hours for which the old secret stays valid.")
	auditActor = text("actor", 128, "Only entries of this actor: admin, market, platform, page, operator: and the name of an operator, or key: and the name of an API key.")

	valuesFrom = moment("from", "Only days that began at this time or later.")
	valuesTo   = moment("to", "Only days that began before this time. Default: now.")

	jobKind      = choice("kind", "", "Only jobs of this kind.", "bulk", "missing", "items")
	listingState = choice("state", "", "Only listings in this state.", "active", "reserved", "sold", "cancelled", "expired")
	tradeState   = choice("state", "", "Only trades in this state.", "pending", "completed", "reversed", "settled")
	minPrice     = number("minPrice", 0, market.MaxPrice, "", "Only listings with at least this price, in minor units.")
	maxPrice     = number("maxPrice", 1, market.MaxPrice, "", "Only listings with at most this price, in minor units.")
	createdFrom  = moment("from", "Only entries created at this time or later.")
	createdTo    = moment("to", "Only entries created before this time.")
	itemName     = param{
		name: "name", in: "query", schema: schema{"type": "string"}, check: catalog.CheckName, doc: "Only listings of items with this market hash name. Without phase: of all phases.",
	}
	ofUser     = param{name: "userId", in: "query", schema: schema{"type": "string"}, check: user.Check, ofUser: true, doc: "Only entries of this user."}
	listingID  = param{name: "id", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Id of the listing."}
	webhookID  = param{name: "id", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Id of the webhook."}
	tradeID    = param{name: "id", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Id of the trade."}
	itemCause  = text("cause", 4096, "Only items that failed with exactly this error.")
	retryCause = text("cause", 4096, "Retry only the items that failed with exactly this error. Default: all.")
	itemState  = choice("state", "", "Only items in this state.", "pending", "updated", "skipped", "noQuote", "failed", "cancelled")
	period     = choice("period", "30d", "Period of the counted trades.", "7d", "30d", "all")
	rankBy     = choice("by", "volume", "Figure that determines the rank.", "volume", "trades", "counterparties")
	topLimit   = number("limit", 1, 100, "100", "Maximum number of ranks to list.")
	syncSource = choice("source", "", "Read the inventory from this source instead of the body.", "steam")
	pullApp    = number("appId", 1, 1<<31-1, "", "Steam app ID of the game to read. Default: 730.")
	pullFrom   = text("contextId", inventory.MaxOpaque, "Inventory context to read. Default: 2.")

	namePath = param{
		name: "name", in: "path", schema: schema{"type": "string"}, check: catalog.CheckName,
		doc: "Market hash name as one percent-encoded segment, byte for byte.",
	}
	nameQuery = param{
		name: "name", in: "query", schema: schema{"type": "string"}, check: catalog.CheckName,
		doc: "Market hash name. If it is present, the segment in the path is ignored and may be empty.",
	}
	phase = param{
		name: "phase", in: "query", schema: schema{"type": "string", "enum": append([]string{""}, catalog.Phases...)}, check: catalog.CheckPhase,
		doc: "Phase of a Doppler-like finish.",
	}
	exportFields = param{
		name: "fields", in: "query", schema: schema{"type": "string", "pattern": listPattern(view.MemberNames())},
		check: func(value string) error { _, err := view.ParseMembers(value); return err },
		doc: "Members of each price, separated by commas. Figures (interval, average, usedMarkets) are added to all other members; " +
			"if a member other than a figure is named, only the named ones are written, with appId, marketHashName and phase.",
	}
	fields = param{
		name: "fields", in: "query", schema: schema{"type": "string", "pattern": listPattern(view.FieldNames())},
		check: func(value string) error { _, err := view.ParseFields(value); return err },
		doc:   "Figures to add to each price, separated by commas: interval, average, usedMarkets.",
	}
	currency = param{
		name: "currency", in: "query", schema: schema{"type": "string", "minLength": 3, "maxLength": 3}, check: checkCurrency,
		doc: "Only entries in this currency.",
	}
	inCurrency = param{
		name: "currency", in: "query", schema: schema{"type": "string", "minLength": 3, "maxLength": 3}, check: checkCurrency,
		doc: "Currency of all amounts. They are converted at the current exchange rates, which the response contains. Default: the base currency.",
	}
	eventCurrency = param{
		name: "currency", in: "query", schema: schema{"type": "string", "minLength": 3, "maxLength": 3}, check: checkCurrency,
		doc: "Currency of the amounts of price changes. They are converted at the current exchange rates, which the data of price.changed contains. Default: the base currency.",
	}
	thenCurrency = param{
		name: "currency", in: "query", schema: schema{"type": "string", "minLength": 3, "maxLength": 3}, check: checkCurrency,
		doc: "Currency of all amounts. Points are converted at the exchange rates of their time, candles at the current rates. The response contains the rates. Default: the base currency, or the currency of the market.",
	}
	checkpoint = param{
		name: "checkpoint", in: "query", schema: schema{"type": "string", "maxLength": wallet.MaxUserCheckpoint}, check: checkCheckpoint,
		doc: "Checkpoint to compare with, from an earlier verification of this user. Default: the newest stored checkpoint.",
	}
	userID = param{
		name: "userId", in: "path", schema: schema{"type": "string"}, check: user.Check, ofUser: true,
		doc: "The platform's id of the user, 1 to 128 bytes.",
	}
	accountID = param{
		name: "userId", in: "path", schema: schema{"type": "string"}, check: user.CheckAny,
		doc: "The user ID on the platform, 1 to 128 bytes, or a house account such as house:fee.",
	}
	deliveryNumber = param{name: "number", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Number of the delivery."}
	// Job ids and names of providers, operators and keys are not checked here: unknown ones give 404, not 400.
	jobID        = param{name: "id", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Id of the job."}
	keyName      = param{name: "key", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Name of the API key."}
	operatorName = param{name: "operator", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Name of the operator."}
	providerName = param{name: "provider", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Name of the provider."}
	marketKey    = param{
		name: "market", in: "query", schema: schema{"type": "string", "minLength": 1}, check: notEmpty,
		doc: "Only this market of the provider. Default: all its markets in quarantine.",
	}
)

// listPattern returns a regular expression that matches a list of names, separated by commas.
func listPattern(names []string) string {
	one := "(" + strings.Join(names, "|") + ")"
	return "^" + one + "(," + one + ")*$"
}

func anything(string) error { return nil }

// notEmpty refuses an empty value. Otherwise a script whose variable is empty would accept all
// markets.
func notEmpty(value string) error {
	if value == "" {
		return errors.New("must not be empty")
	}
	return nil
}

// number returns a parameter that is a whole number from least to most.
func number(name string, least, most int64, preset, doc string) param {
	p := param{name: name, in: "query", doc: doc, preset: preset, schema: schema{"type": "integer", "format": "int64", "minimum": least, "maximum": most}}
	p.check = func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < least || n > most || strings.HasPrefix(value, "+") {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		return nil
	}
	return p
}

// amount returns a parameter that is a decimal number of at least minimum.
func amount(name string, minimum money.Micro, doc string) param {
	return param{name: name, in: "query", doc: doc, schema: schema{"type": "number", "format": "double", "minimum": minimum}, check: func(value string) error {
		if m, err := money.Parse([]byte(value), 1); err != nil || m < minimum || len(value) > 32 {
			return fmt.Errorf("must be a decimal number, at least %v, such as 12.5", minimum)
		}
		return nil
	}}
}

// moment returns a parameter that is a time.
func moment(name, doc string) param {
	return param{name: name, in: "query", doc: doc, schema: schema{"type": "string", "format": "date-time"}, check: func(value string) error {
		// Times outside these years overflow the microseconds of the database.
		switch at, err := time.Parse(time.RFC3339, value); {
		case err != nil:
			return errors.New("must be an RFC 3339 time, such as 2026-01-31T12:00:00Z; write + as %2B")
		case at.Year() < 1970 || at.Year() > 9999:
			return errors.New("must be a time of the years 1970 to 9999")
		}
		return nil
	}}
}

// flag returns a parameter that is 1, 0, true or false.
func flag(name, doc string) param { return choice(name, "0", doc, "0", "1", "true", "false") }

func choice(name, preset, doc string, values ...string) param {
	p := param{name: name, in: "query", doc: doc, preset: preset, schema: schema{"type": "string", "enum": values}}
	p.check = func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
	return p
}

func text(name string, maxBytes int, doc string) param {
	p := param{name: name, in: "query", doc: doc, schema: schema{"type": "string", "maxLength": maxBytes}}
	p.check = func(value string) error {
		if len(value) > maxBytes || !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
			return fmt.Errorf("must be valid UTF-8 without NUL, at most %d bytes", maxBytes)
		}
		return nil
	}
	return p
}

// values are the checked parameters of a request, by name.
type values map[string]string

func (v values) flag(name string) bool { return v[name] == "1" || v[name] == "true" }

// number returns a whole number, or 0 for an absent parameter.
func (v values) number(name string) int64 {
	n, _ := strconv.ParseInt(v[name], 10, 64) // checked by bind
	return n
}

// seconds returns a number of seconds as a duration.
func (v values) seconds(name string) time.Duration {
	return time.Duration(v.number(name)) * time.Second
}

// amount returns a decimal number, or 0 for an absent parameter.
func (v values) amount(name string) money.Micro {
	m, _ := money.Parse([]byte(v[name]), 1) // checked by bind
	return m
}

// moment returns a time, or the zero time for an absent parameter.
func (v values) moment(name string) time.Time {
	at, _ := time.Parse(time.RFC3339, v[name]) // checked by bind
	return at
}

const invalidParams = "The request has invalid parameters. See errors."

// bind checks the parameters of a request and returns their values. It refuses unknown
// parameters.
func bind(params []param, path map[string]string, rawQuery string) (values, error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, fault.New(fault.Invalid, "invalid_parameters", "The query string is malformed. Send percent-encoded name=value pairs, joined by &.")
	}
	bound := values{}
	var fields []fault.Field
	wrong := func(in, name, detail string) {
		fields = append(fields, fault.Field{Pointer: "/" + in + "/" + name, Detail: detail})
	}
	var refused *fault.Error // fault that has its own code instead of invalid_parameters
	refuse := func(in, name string, err error) {
		if f := fault.Of(err); f != nil && f.Kind != fault.Invalid {
			refused = f
		} else {
			wrong(in, name, err.Error())
		}
	}
	for _, p := range params {
		given := query[p.name]
		switch {
		case p.in == "path" && len(given) > 0 && hasQuery(params, p.name):
			// The value in the query overrides the path.
		case p.in == "path":
			bound[p.name] = path[p.name]
			if err := p.check(path[p.name]); err != nil {
				refuse("path", p.name, err)
			}
		case len(given) > 1:
			wrong("query", p.name, "must occur only once")
		case len(given) == 1:
			bound[p.name] = given[0]
			if err := p.check(given[0]); err != nil {
				refuse("query", p.name, err)
			}
		case p.preset != "":
			bound[p.name] = p.preset
		}
	}
	unknown, more := unknownParams(params, query)
	for _, name := range unknown {
		wrong("query", strings.NewReplacer("~", "~0", "/", "~1").Replace(name), "is unknown; known parameters: "+known(params))
	}
	switch {
	case len(fields) == 0 && refused != nil:
		return nil, refused
	case len(fields) == 0:
		return bound, nil
	}
	f := fault.New(fault.Invalid, "invalid_parameters", invalidParams)
	if more > 0 {
		f.Detail = fmt.Sprintf("%s There are %d more unknown parameters.", invalidParams, more)
	}
	f.Fields = fields
	return nil, f
}

func hasQuery(params []param, name string) bool {
	return slices.ContainsFunc(params, func(p param) bool { return p.in == "query" && p.name == name })
}

// unknownParams returns up to 20 names in a query that are not parameters, sorted and truncated
// to 64 bytes each. The result more is the number of further names.
func unknownParams(params []param, query url.Values) (names []string, more int) {
	const most, longest = 20, 64
	for name := range query {
		if hasQuery(params, name) {
			continue
		}
		if len(name) > longest {
			name = name[:longest]
		}
		names = append(names, strings.ToValidUTF8(name, "\uFFFD"))
	}
	sort.Strings(names)
	if len(names) > most {
		return names[:most], len(names) - most
	}
	return names, 0
}

func known(params []param) string {
	var names []string
	for _, p := range params {
		if p.in == "query" {
			names = append(names, p.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}
