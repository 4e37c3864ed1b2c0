package pricelist

import (
	"net/textproto"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"assay/internal/provider"
)

// maxLimit is the maximum number of requests of a limit.
const maxLimit = 1_000_000

// readLimit reads the rate limit of the list's host.
func (c *compiler) readLimit() {
	o := c.o.object("limit")
	if o == nil {
		return
	}
	if c.location.file != "" {
		c.o.fault("limit", "does not apply to a file")
	}
	for _, name := range []string{"requests", "per"} {
		if !o.has(name) {
			o.fault(name, "is missing")
		}
	}
	c.location.limit = provider.Limit{Requests: int(o.integer("requests", 1, maxLimit, 1)), Per: o.duration("per", time.Minute)}
	o.done()
}

// maxQuota is the maximum number of requests of a quota.
const maxQuota = 1_000_000_000

// readQuota reads the daily and monthly quota of the list's host.
func (c *compiler) readQuota() {
	o := c.o.object("quota")
	if o == nil {
		return
	}
	if c.location.file != "" {
		c.o.fault("quota", "does not apply to a file")
	}
	if !o.has("day") && !o.has("month") {
		c.o.fault("quota", "must set \"day\", \"month\" or both")
	}
	c.location.quota = provider.Quota{Day: o.integer("day", 1, maxQuota, 0), Month: o.integer("month", 1, maxQuota, 0)}
	o.done()
}

// readLocation reads the location of the list and the request headers.
func (c *compiler) readLocation(env Env) {
	text := strings.ReplaceAll(c.o.required("location"), "{appId}", strconv.Itoa(int(c.appID)))
	scheme, _, hasScheme := strings.Cut(text, "://")
	switch {
	case text == "":
	case !hasScheme:
		c.location.file = absolute(env.Dir, text)
	case strings.EqualFold(scheme, "file"):
		c.readFileURL(text)
	case strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"):
		c.readURL(text, env)
	default:
		c.o.fault("location", "must be a path, or a URL with scheme file, http or https")
	}
	headers := c.o.object("headers")
	if headers == nil {
		return
	}
	if text != "" && c.location.url == "" {
		c.o.fault("headers", "do not apply to a file")
	}
	for _, name := range headers.names {
		c.readHeader(headers, name, env)
	}
}

func absolute(dir, name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

func (c *compiler) readFileURL(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
		c.o.fault("location", "must be of the form file:///path")
		return
	}
	c.location.file = filepath.FromSlash(u.Path)
}

func (c *compiler) readURL(text string, env Env) {
	t := template(text)
	filled, err := t.expand(func(string) (string, error) { return "x", nil })
	if err != nil {
		c.o.fault("location", "%s", err)
		return
	}
	u, err := url.Parse(filled)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		c.o.fault("location", "must be a URL with a host and without user or fragment")
		return
	}
	if before, _, found := strings.Cut(text, "${"); found && strings.Count(before, "/") < 3 {
		c.o.fault("location", "a secret must not be within the host")
		return
	}
	c.location.url, c.location.host = t, strings.ToLower(u.Host)
	c.checkSecrets(c.o, "location", t, env)
}

func (c *compiler) readHeader(o *object, name string, env Env) {
	value := template(o.text(name))
	key := textproto.CanonicalMIMEHeaderKey(name)
	switch key {
	case "Host", "Accept-Encoding", "Content-Length", "Connection", "Transfer-Encoding", "Range":
		o.fault(name, "must not be configured: the HTTP client sets it")
		return
	}
	if !headerName(name) || strings.ContainsAny(string(value), "\r\n\x00") {
		o.fault(name, "is not a valid HTTP header")
		return
	}
	c.checkSecrets(o, name, value, env)
	c.headers = append(c.headers, header{name: key, value: value})
}

// checkSecrets adds faults for invalid placeholders and unavailable secrets.
func (c *compiler) checkSecrets(o *object, member string, t template, env Env) {
	names, err := t.names()
	if err != nil {
		o.fault(member, "%s", err)
		return
	}
	for _, name := range names {
		if env.Secret == nil {
			return
		}
		if _, err := env.Secret(name); err != nil {
			o.fault(member, "the secret %s %s", name, err)
		}
	}
}

func headerName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("()<>@,;:\\\"/[]?={}", c) >= 0 {
			return false
		}
	}
	return name != ""
}
