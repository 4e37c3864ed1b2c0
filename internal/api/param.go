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

// param is a parameter of a path or query. A value that passed check is what
// its handler gets, as text.
type param struct {
	name   string
	in     string // path, query
	doc    string
	preset string // what stands for an absent one
	schema schema
	check  func(value string) error
	ofUser bool // it is the id of a platform's user: reserved ones are 422
}

// The parameters of all routes.
var (
	limit      = number("limit", 1, 1000, "100", "How many to list.")
	cursor     = text("cursor", 1024, "nextCursor of the page before.")
	appID      = number("appId", 1, 1<<31-1, "730", "Steam's number of the game.")
	anyAppID   = number("appId", 1, 1<<31-1, "", "Steam's number of the game; all games without it.")
	search     = text("q", catalog.MaxName, "Words that the name holds, each anywhere and in any ASCII case; at most 16.")
	userPrefix = text("prefix", user.MaxID, "How the ids of the users begin, byte for byte.")
	force      = flag("force", "Also what was priced or found without sales a short time ago.")
	dryRun     = flag("dryRun", "Only tell what it would do.")

	allowLarge       = flag("allowLargeChange", "Also if a fee changes by over half, or by over five percent of the amount.")
	feeVersionShown  = number("version", 1, 1<<62, "", "Which version; the active one without it.")
	feeVersionBefore = number("before", 1, 1<<62, "", "List the versions below this one; the newest without it.")
	feeVersionAgain  = number("version", 1, 1<<62, "", "Which version to activate again. It must be given.")

	priceStatus  = choice("status", "", "Only items whose price has this status now.", view.PriceStatuses()...)
	onMarket     = text("market", 128, "Only items that this market offers or has sold, by its key, such as steam.")
	priceFrom    = amount("minPrice", 0, "Only items of this price or more, a decimal number of the base currency.")
	priceTo      = amount("maxPrice", 1, "Only items with a price of this or less, a decimal number of the base currency.")
	changedSince = moment("changedSince", "Only items whose price changed at this time or later.")
	updatedSince = moment("updatedSince", "Only items whose price was confirmed at this time or later, changed or not.")
	held         = flag("held", "Only items of which a suspicious new price waits for confirmation.")
	itemSort     = choice("sort", "name", "The order, by name among equals: a minus for the highest price, the worst status or the latest change first.", view.ItemSorts()...)

	jobKind      = choice("kind", "", "Only jobs of this kind.", "bulk", "missing")
	listingState = choice("state", "", "Only listings in this state.", "active", "reserved", "sold", "cancelled", "expired")
	tradeState   = choice("state", "", "Only trades in this state.", "pending", "completed", "reversed", "settled")
	minPrice     = number("minPrice", 0, market.MaxPrice, "", "Only of this price or more, in minor units.")
	maxPrice     = number("maxPrice", 1, market.MaxPrice, "", "Only of this price or less, in minor units.")
	createdFrom  = moment("from", "Only created at this time or later.")
	createdTo    = moment("to", "Only created before this time.")
	itemName     = param{
		name: "name", in: "query", schema: schema{"type": "string"}, check: catalog.CheckName, doc: "Only of this market hash name, of all phases without phase.",
	}
	ofUser     = param{name: "userId", in: "query", schema: schema{"type": "string"}, check: user.Check, ofUser: true, doc: "Only of this user."}
	listingID  = param{name: "id", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Id of the listing."}
	tradeID    = param{name: "id", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Id of the trade."}
	itemState  = choice("state", "", "Only items in this state.", "pending", "updated", "skipped", "noQuote", "failed", "cancelled")
	period     = choice("period", "30d", "Of which trades.", "7d", "30d", "all")
	rankBy     = choice("by", "volume", "What decides the rank.", "volume", "trades", "counterparties")
	topLimit   = number("limit", 1, 100, "100", "How many to list.")
	syncSource = choice("source", "", "Pull from here instead of taking the body.", "steam")
	pullApp    = number("appId", 1, 1<<31-1, "", "Steam's number of the game to pull; 730 without it.")
	pullFrom   = text("contextId", inventory.MaxOpaque, "The context to pull; 2 without it.")

	namePath = param{
		name: "name", in: "path", schema: schema{"type": "string"}, check: catalog.CheckName,
		doc: "Market hash name as one percent-encoded segment, byte for byte.",
	}
	nameQuery = param{
		name: "name", in: "query", schema: schema{"type": "string"}, check: catalog.CheckName,
		doc: "Market hash name; where it is given, the path's segment is ignored and may be empty.",
	}
	phase = param{
		name: "phase", in: "query", schema: schema{"type": "string", "enum": append([]string{""}, catalog.Phases...)}, check: catalog.CheckPhase,
		doc: "Phase of a Doppler-like finish.",
	}
	fields = param{
		name: "fields", in: "query", schema: schema{"type": "string", "pattern": "^(" + anyField() + ")(,(" + anyField() + "))*$"},
		check: func(value string) error { _, err := view.ParseFields(value); return err },
		doc:   "Figures to add to each price, with commas between them: interval, average, usedMarkets.",
	}
	currency = param{
		name: "currency", in: "query", schema: schema{"type": "string", "minLength": 3, "maxLength": 3}, check: checkCurrency,
		doc: "Only in this currency.",
	}
	checkpoint = param{
		name: "checkpoint", in: "query", schema: schema{"type": "string", "maxLength": wallet.MaxUserCheckpoint}, check: checkCheckpoint,
		doc: "One that an earlier verification of this user answered, to compare with; without it, the newest stored one is.",
	}
	userID = param{
		name: "userId", in: "path", schema: schema{"type": "string"}, check: user.Check, ofUser: true,
		doc: "The platform's id of the user, 1 to 128 bytes.",
	}
	accountID = param{
		name: "userId", in: "path", schema: schema{"type": "string"}, check: user.CheckAny,
		doc: "The user ID on the platform, 1 to 128 bytes, or a house account such as house:fee.",
	}
	// What a job or a provider is not, is not found: their names are ours.
	jobID        = param{name: "id", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Id of the job."}
	providerName = param{name: "provider", in: "path", schema: schema{"type": "string"}, check: anything, doc: "Name of the provider."}
	marketKey    = param{
		name: "market", in: "query", schema: schema{"type": "string", "minLength": 1}, check: notEmpty,
		doc: "Only this market of the provider; all that are in quarantine without it.",
	}
)

// anyField is a regular expression of one name of a field.
func anyField() string { return strings.Join(view.FieldNames(), "|") }

func anything(string) error { return nil }

// notEmpty keeps what a script forgot to fill in from meaning everything.
func notEmpty(value string) error {
	if value == "" {
		return errors.New("must not be empty")
	}
	return nil
}

// number is a whole number from least to most.
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

// amount is a decimal number of the base currency, of at least so many micro-units.
func amount(name string, least money.Micro, doc string) param {
	return param{name: name, in: "query", doc: doc, schema: schema{"type": "number", "format": "double", "minimum": least}, check: func(value string) error {
		if m, err := money.Parse([]byte(value), 1); err != nil || m < least || len(value) > 32 {
			return fmt.Errorf("must be a decimal number of %v or more, such as 12.5", least)
		}
		return nil
	}}
}

// moment is a time.
func moment(name, doc string) param {
	return param{name: name, in: "query", doc: doc, schema: schema{"type": "string", "format": "date-time"}, check: func(value string) error {
		// Beyond these years the database's microseconds would overflow.
		if at, err := time.Parse(time.RFC3339, value); err != nil || at.Year() < 1970 || at.Year() > 9999 {
			return errors.New("must be a time of RFC 3339, such as 2026-01-31T12:00:00Z, with %2B for a plus")
		}
		return nil
	}}
}

// flag is 1, 0, true or false.
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

// number returns 0 for an absent one.
func (v values) number(name string) int64 {
	n, _ := strconv.ParseInt(v[name], 10, 64) // was checked
	return n
}

// amount returns 0 for an absent one.
func (v values) amount(name string) money.Micro {
	m, _ := money.Parse([]byte(v[name]), 1) // was checked
	return m
}

// moment returns the zero time for an absent one.
func (v values) moment(name string) time.Time {
	at, _ := time.Parse(time.RFC3339, v[name]) // was checked
	return at
}

// bind checks what a request gives for the parameters of its operation, and
// that it gives nothing else.
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
	var refused *fault.Error // a value that has a code of its own
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
			// The query's value counts instead.
		case p.in == "path":
			bound[p.name] = path[p.name]
			if err := p.check(path[p.name]); err != nil {
				refuse("path", p.name, err)
			}
		case len(given) > 1:
			wrong("query", p.name, "must be given once")
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
		wrong("query", strings.NewReplacer("~", "~0", "/", "~1").Replace(name), "is not known; known are: "+known(params))
	}
	switch {
	case len(fields) == 0 && refused != nil:
		return nil, refused
	case len(fields) == 0:
		return bound, nil
	}
	f := fault.New(fault.Invalid, "invalid_parameters", "The request has wrong parameters; see errors.")
	if more > 0 {
		f.Detail = fmt.Sprintf("The request has wrong parameters; see errors, and %d more that are not known.", more)
	}
	f.Fields = fields
	return nil, f
}

func hasQuery(params []param, name string) bool {
	return slices.ContainsFunc(params, func(p param) bool { return p.in == "query" && p.name == name })
}

// unknownParams returns some of the names in a query that are no parameters,
// and how many more there are. Long ones are cut.
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
