package pricelist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"assay/internal/diskfile"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Options holds the dependencies of a Provider.
type Options struct {
	Config *Config
	// Clients are the clients by host. They may be nil if all lists are files.
	Clients provider.Clients
	// Secret returns the value of a secret. Its errors complete the sentence "secret NAME
	// ...", such as "is not set". Fetch calls it for each request. It may be nil if the
	// configuration has no secrets.
	Secret func(name string) (string, error)
}

// Provider reads the configured lists. It implements provider.Provider with one file for
// each list.
type Provider struct {
	config  *Config
	lists   map[string]*list
	clients provider.Clients // by host
	secret  func(string) (string, error)
}

var _ provider.Provider = (*Provider)(nil)

// New returns a Provider. It does not read the lists.
func New(o Options) (*Provider, error) {
	s := &Provider{config: o.Config, lists: map[string]*list{}, clients: o.Clients, secret: o.Secret}
	if s.secret == nil {
		s.secret = func(string) (string, error) { return "", errUnset }
	}
	for _, l := range o.Config.lists {
		if l.location.url != "" && o.Clients[l.location.host] == nil {
			return nil, fmt.Errorf("price list %q has a URL, but no client is set", l.key)
		}
		s.lists[l.key] = l
	}
	return s, nil
}

// Describe returns the markets of all lists and one file for each list.
func (s *Provider) Describe() provider.Description {
	d := provider.Description{
		Name: Name, Title: "Price lists", Shape: provider.Bulk,
		Interval: s.config.interval, Markets: s.config.markets, Hosts: s.config.hosts,
		Terms: "The operator selects the lists. The terms of their publishers apply.",
	}
	for _, l := range s.config.lists {
		f := provider.File{Key: l.key, AppID: l.appID, Host: l.location.host, Local: l.location.url == ""}
		for i := range l.quotes {
			f.Markets = append(f.Markets, l.quotes[i].market.Key)
		}
		d.Files = append(d.Files, f)
	}
	return d
}

// Fetch reads the list of the call. It returns errors of the sink unchanged. All other
// errors have type *provider.Error and contain the list's key, but no path or secret.
func (s *Provider) Fetch(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	l := s.lists[call.File]
	if l == nil || l.appID != call.AppID {
		return provider.Result{}, provider.Protocol(Name, "unknown list %q of app %d", call.File, call.AppID)
	}
	if l.location.url == "" {
		return s.fetchFile(ctx, l, call.Meter, sink)
	}
	return s.fetchURL(ctx, l, call.Meter, sink)
}

func (s *Provider) fetchURL(ctx context.Context, l *list, meter *provider.Meter, sink provider.Sink) (provider.Result, error) {
	req := provider.Request{Method: http.MethodGet, Header: http.Header{}, Meter: meter}
	var err error
	if req.URL, err = l.location.url.expandURL(s.secret); err != nil {
		return provider.Result{}, l.fail(provider.KindAuth, err.Error(), nil)
	}
	for _, h := range l.headers {
		value, err := h.value.expand(s.secret)
		if err != nil {
			return provider.Result{}, l.fail(provider.KindAuth, err.Error(), nil)
		}
		req.Header.Add(h.name, value)
	}
	var result provider.Result
	err = s.clients[l.location.host].Do(ctx, req, func(resp *provider.Response) error {
		// If the header is missing or invalid, the time is zero, which means unknown.
		modified, _ := http.ParseTime(resp.Header.Get("Last-Modified"))
		result, err = read(ctx, l, resp.Body, modified, sink)
		return err
	})
	if err != nil {
		return provider.Result{}, l.named(err)
	}
	return result, nil
}

// named adds the list's key to a provider error.
func (l *list) named(err error) error {
	var e *provider.Error
	prefix := fmt.Sprintf("list %q", l.key)
	if !errors.As(err, &e) || strings.HasPrefix(e.Detail, prefix) {
		return err
	}
	named := *e
	if named.Detail != "" {
		prefix += ": "
	}
	named.Detail = prefix + named.Detail
	return &named
}

func (s *Provider) fetchFile(ctx context.Context, l *list, meter *provider.Meter, sink provider.Sink) (provider.Result, error) {
	f, err := diskfile.OpenRegular(l.location.file)
	if err != nil {
		return provider.Result{}, l.fail(provider.KindConnect, openDetail(err), err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return provider.Result{}, l.fail(provider.KindConnect, "the file cannot be read", err)
	}
	return read(ctx, l, &metered{src: f, meter: meter}, info.ModTime(), sink)
}

func openDetail(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "the file does not exist"
	case errors.Is(err, diskfile.ErrNotRegular):
		return "the location is not a regular file"
	case errors.Is(err, os.ErrPermission):
		return "no permission to read the file"
	default:
		return "the file cannot be opened"
	}
}

// metered counts the bytes of a file in the meter.
type metered struct {
	src   io.Reader
	meter *provider.Meter
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.src.Read(p)
	m.meter.AddBytes(int64(n))
	return n, err
}

// read reads and validates one list.
func read(ctx context.Context, l *list, src io.Reader, modified time.Time, sink provider.Sink) (provider.Result, error) {
	sink.Restart()
	r := newRows(l, sink)
	if l.listTime.modified {
		r.time = modified.UTC()
	}
	err := decode(ctx, src, r)
	if r.SinkError() != nil {
		return provider.Result{}, r.SinkError()
	}
	var result provider.Result
	if err == nil {
		result.Silent, err = r.finish()
	}
	if err != nil {
		return provider.Result{}, l.classify(ctx, err)
	}
	result.ProviderTime = r.time
	return result, nil
}

func (l *list) fail(kind provider.Kind, detail string, cause error) *provider.Error {
	return &provider.Error{Provider: Name, Kind: kind, Detail: fmt.Sprintf("list %q: %s", l.key, detail), Err: cause}
}

// classify converts a read error into a *provider.Error.
func (l *list) classify(ctx context.Context, err error) error {
	var known *provider.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return l.fail(provider.KindTimeout, "reading timed out", ctx.Err())
	case ctx.Err() != nil:
		return l.fail(provider.KindCancelled, "the caller cancelled the request", ctx.Err())
	case errors.Is(err, errTooLarge), errors.Is(err, errTooManyItems):
		return l.fail(provider.KindTooLarge, feed.Innermost(err).Error(), nil)
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return l.fail(provider.KindConnect, "the file cannot be read", err)
	}
	return l.named(feed.Classify(ctx, Name, err))
}
