package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/view"
)

// Limits of a call to the server.
const (
	callTimeout = 30 * time.Second
	syncTimeout = 2 * time.Minute
	maxAnswer   = 64 << 20
	maxPush     = 32 << 20 // what the server takes of an inventory
	pageSize    = 1000
)

// credential is a secret that the server wants, and where it was found.
type credential struct {
	header  string // name of the header that carries it
	value   string // the header's value; never printed
	origin  string // "MARKET_PRICE_SYNC_SECRET (environment)"
	missing error  // why there is none, or nil
}

// client talks to a running server.
type client struct {
	base     string // "http://127.0.0.1:8080"
	market   credential
	platform credential
	admin    credential
	http     *http.Client
}

// newClient returns a client of the server at base. It follows no redirect and
// uses no proxy: its requests carry secrets.
func newClient(base string, market, platform, admin credential) *client {
	return &client{
		base: base, market: market, platform: platform, admin: admin,
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// request is one call to the server.
type request struct {
	method  string // "" is GET
	path    string // escaped
	query   url.Values
	with    credential
	body    io.Reader
	timeout time.Duration // 0: callTimeout
	accept  int           // a status that is an answer too, besides 2xx

	idempotencyKey string
}

// do sends r and decodes the answer into into, which is nil for one without a
// body. It returns an unreachableError
// if there is no response and a problem if the server refuses.
func (c *client) do(ctx context.Context, r request, into any) error {
	if r.with.missing != nil {
		return r.with.missing
	}
	timeout := r.timeout
	if timeout == 0 {
		timeout = callTimeout
	}
	calling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := c.build(calling, r)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.unanswered(ctx, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("the server at %s answered with more than %d MiB", c.base, maxAnswer>>20)
	case resp.StatusCode/100 != 2 && resp.StatusCode != r.accept:
		return c.problem(resp, body, r.with)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &problem{Status: resp.StatusCode, Detail: "the server at " + c.base + " answered with something else than expected: is it `assay`, of the same version?"}
	}
	return nil
}

func (c *client) build(ctx context.Context, r request) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	method := r.method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, target, r.body)
	if err != nil {
		return nil, fmt.Errorf("the server's address %s: %w", c.base, err)
	}
	if r.with.header != "" {
		req.Header.Set(r.with.header, r.with.value)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	return req, nil
}

// unanswered says that no answer came, unless it is the caller who went away.
func (c *client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL, which the message names already
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no answer in time")
	}
	return &unreachableError{base: c.base, err: err}
}

// unreachableError means that there was no response at the server's address.
type unreachableError struct {
	base string
	err  error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("no server reached at %s: %v", e.base, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// Hint says what is most often the reason.
func (e *unreachableError) Hint() string {
	return "is `assay serve` running? set its address with LISTEN_ADDR or --listen-addr"
}

// fieldError is one faulty part of an input.
type fieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// problem is an answer that says what is wrong (RFC 9457).
type problem struct {
	Status    int          `json:"status"`
	Title     string       `json:"title"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	RequestID string       `json:"requestId"`
	Errors    []fieldError `json:"errors"`

	hint string
}

func (p *problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Code != "" {
		text += " (" + p.Code + ")"
	}
	if p.Status >= 500 && p.RequestID != "" {
		text += ", request " + p.RequestID
	}
	return text
}

// damaged reports whether the server does nothing because of what is stored in the
// ledger, or beside it.
func (p *problem) damaged() bool {
	return p.Code == "ledger_key_missing" || strings.HasSuffix(p.Code, "_tampered")
}

// Hint says what to do about it, if that is known.
func (p *problem) Hint() string { return p.hint }

// problem reads an answer that is no success.
func (c *client) problem(resp *http.Response, body []byte, with credential) *problem {
	p := &problem{}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, p) != nil {
		*p = problem{Detail: fmt.Sprintf("the server at %s answered %d and does not say why: is it `assay`?", c.base, resp.StatusCode)}
	}
	p.Status = resp.StatusCode
	if p.Detail == "" && p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	p.Detail, p.Title = printable(p.Detail), printable(p.Title)
	switch {
	case p.damaged():
		p.hint = "run `assay verify --all`: it names what was changed"
	case p.Status == http.StatusUnauthorized, p.Status == http.StatusForbidden:
		p.hint = "the secret came from " + with.origin + ": it must be one that the server at " + c.base + " has"
	case p.Status == http.StatusTooManyRequests, p.Status == http.StatusServiceUnavailable:
		if after := resp.Header.Get("Retry-After"); after != "" {
			p.hint = "try again after " + printable(after) + " s"
		}
	}
	return p
}

const marketPrices = "/api/market-prices"

// startAnswer answers a refresh.
type startAnswer struct {
	Started       bool     `json:"started"`
	Reason        string   `json:"reason,omitzero"`
	ForcedIgnored bool     `json:"forcedIgnored"`
	Job           view.Job `json:"job"`
}

// refresh starts a bulk job, or finds the one that is under way.
func (c *client) refresh(ctx context.Context, forced bool) (startAnswer, error) {
	var a startAnswer
	q := url.Values{}
	if forced {
		q.Set("force", "1")
	}
	err := c.do(ctx, request{method: http.MethodPost, path: marketPrices + "/refresh", query: q, with: c.market}, &a)
	return a, err
}

// dryRun requests what a refresh would do.
func (c *client) dryRun(ctx context.Context, forced bool) (view.DryRun, error) {
	var a view.DryRun
	q := url.Values{"dryRun": {"1"}}
	if forced {
		q.Set("force", "1")
	}
	err := c.do(ctx, request{method: http.MethodPost, path: marketPrices + "/refresh", query: q, with: c.market}, &a)
	return a, err
}

// job returns a refresh.
func (c *client) job(ctx context.Context, id string) (view.Job, error) {
	var a view.Job
	err := c.do(ctx, request{path: marketPrices + "/jobs/" + segment(id), with: c.market}, &a)
	return a, err
}

// status returns what runs and how fresh prices are.
func (c *client) status(ctx context.Context) (view.Status, error) {
	var a view.Status
	err := c.do(ctx, request{path: marketPrices + "/status", with: c.market}, &a)
	return a, err
}

// providerDebug returns the state of all providers.
func (c *client) providerDebug(ctx context.Context) (view.ProvidersDebug, error) {
	var a view.ProvidersDebug
	err := c.do(ctx, request{path: marketPrices + "/provider-debug", with: c.market}, &a)
	return a, err
}

// item returns an item's price with its explanation.
func (c *client) item(ctx context.Context, appID int32, name, phase string) (view.ItemDetail, error) {
	var a view.ItemDetail
	err := c.do(ctx, request{path: "/api/prices/items/" + segment(name), query: itemQuery(appID, phase), with: c.market}, &a)
	return a, err
}

// acceptItem makes the price of an item that is held back its price.
func (c *client) acceptItem(ctx context.Context, appID int32, name, phase string) (view.ItemDetail, error) {
	var a view.ItemDetail
	path := marketPrices + "/items/" + segment(name) + "/accept"
	err := c.do(ctx, request{method: http.MethodPost, path: path, query: itemQuery(appID, phase), with: c.market}, &a)
	return a, err
}

func itemQuery(appID int32, phase string) url.Values {
	q := url.Values{"appId": {strconv.Itoa(int(appID))}}
	if phase != "" {
		q.Set("phase", phase)
	}
	return q
}

// items calls each with every item of a game, page by page.
func (c *client) items(ctx context.Context, appID int32, each func([]view.ItemPrice)) error {
	q := url.Values{"appId": {strconv.Itoa(int(appID))}, "limit": {strconv.Itoa(pageSize)}}
	for {
		var page view.Page[view.ItemPrice]
		if err := c.do(ctx, request{path: "/api/prices/items", query: q, with: c.market}, &page); err != nil {
			return err
		}
		each(page.Items)
		if page.NextCursor == nil {
			return nil
		}
		q.Set("cursor", *page.NextCursor)
	}
}

// putUser creates a user or replaces what is known of one.
func (c *client) putUser(ctx context.Context, u view.User) (view.User, error) {
	body, err := json.Marshal(map[string]any{"steamId": u.SteamID, "displayName": u.DisplayName, "leaderboard": u.Leaderboard})
	if err != nil {
		return view.User{}, err
	}
	var a view.User
	err = c.do(ctx, request{
		method: http.MethodPut, path: "/api/users/" + segment(u.UserID), with: c.platform, body: bytes.NewReader(body),
	}, &a)
	return a, err
}

// sync pushes a user's inventory, which is JSON as the API takes it.
func (c *client) sync(ctx context.Context, userID string, push []byte) (view.SyncResult, error) {
	var a view.SyncResult
	err := c.do(ctx, request{
		method: http.MethodPost, path: "/api/inventory/" + segment(userID) + "/sync",
		with: c.platform, body: bytes.NewReader(push), timeout: syncTimeout,
	}, &a)
	return a, err
}

// pull has the server read a user's inventory from Steam; zero values are the
// server's to choose.
func (c *client) pull(ctx context.Context, userID string, appID int32, contextID string) (view.SyncResult, error) {
	q := url.Values{"provider": {"steam"}}
	if appID != 0 {
		q.Set("appId", strconv.Itoa(int(appID)))
	}
	if contextID != "" {
		q.Set("contextId", contextID)
	}
	var a view.SyncResult
	err := c.do(ctx, request{
		method: http.MethodPost, path: "/api/inventory/" + segment(userID) + "/sync", query: q, with: c.platform, timeout: syncTimeout,
	}, &a)
	return a, err
}

// inventory returns a whole inventory, all pages of it. An appID of 0 is every
// game.
func (c *client) inventory(ctx context.Context, userID string, appID int32) (view.Inventory, error) {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}, "fields": {allFields()}}
	if appID != 0 {
		q.Set("appId", strconv.Itoa(int(appID)))
	}
	var all view.Inventory
	for {
		var page view.Inventory
		if err := c.do(ctx, request{path: "/api/inventory/" + segment(userID), query: q, with: c.platform}, &page); err != nil {
			return view.Inventory{}, err
		}
		page.Items = append(all.Items, page.Items...)
		all = page
		if all.NextCursor == nil {
			return all, nil
		}
		q.Set("cursor", *all.NextCursor)
	}
}

// health requests the server's health. An unhealthy server responds, too.
func (c *client) health(ctx context.Context) (view.Health, error) {
	var a view.Health
	err := c.do(ctx, request{path: "/api/health", accept: http.StatusServiceUnavailable}, &a)
	return a, err
}

// segment makes one segment of a path out of s, whatever s holds. The dots of
// "." and ".." are escaped, too, because proxies treat them as directories.
func segment(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}
