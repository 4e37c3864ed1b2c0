package fee

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"assay/internal/diskfile"
	"assay/internal/fault"
	"assay/internal/provider"
)

// maxMark is the maximum length of a stored ETag in bytes.
const maxMark = 200

// File is a local file. Load reads it again at each refresh.
type File struct{ Path string }

// Name returns the path. Only operators see it; API responses omit it.
func (f File) Name() string { return f.Path }

// Load implements Source.
func (f File) Load(context.Context, string) (Loaded, error) {
	text, err := f.read()
	if err != nil {
		reason := err
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			reason = pe.Err // without the path
		}
		return Loaded{}, fault.New(fault.Upstream, "fee_rules_unreachable", "The file of the fee rules cannot be read: %v. The active rules are unchanged.", reason)
	}
	set, err := decodeWhole(text)
	return Loaded{Set: set}, err
}

func (f File) read() ([]byte, error) {
	file, err := diskfile.OpenRegular(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, MaxBytes+1))
}

func decodeWhole(text []byte) (*Set, error) {
	if len(text) > MaxBytes {
		return nil, tooLarge()
	}
	return Decode(bytes.NewReader(text))
}

// tooLarge returns the fault for a document that exceeds the size limit.
func tooLarge() error {
	f := fault.New(fault.Unprocessable, "invalid_fee_rules", "The fee rules are too large. The active rules are unchanged.")
	f.Fields = []fault.Field{{Code: TooLarge, Detail: "the document has more than 1 MiB"}}
	return f
}

// Address is an HTTPS URL. Load requests it at each refresh.
type Address struct {
	client *provider.Client
	url    *url.URL
}

// ClientOptions returns o with a short timeout. The client also sends requests after
// failures, because an operator started the refresh.
func ClientOptions(o provider.Options, u *url.URL) provider.Options {
	o.Provider, o.AllowHosts = "fee rules", []string{provider.HostPort(u)}
	o.MaxBody, o.Attempts = MaxBytes, 2
	o.Timeout, o.Total, o.Pause = 10*time.Second, 15*time.Second, -1
	return o
}

// NewAddress returns the source. The client must have the options of ClientOptions.
func NewAddress(client *provider.Client, u *url.URL) *Address { return &Address{client, u} }

// Name returns the URL without parts that may be secret.
func (a *Address) Name() string {
	return (&url.URL{Scheme: a.url.Scheme, Host: a.url.Host, Path: a.url.Path}).String()
}

// Load implements Source. The mark is the ETag of a response from this URL.
func (a *Address) Load(ctx context.Context, mark string) (loaded Loaded, err error) {
	sum := sha256.Sum256([]byte(a.url.String()))
	own := hex.EncodeToString(sum[:8]) + " "
	req := provider.Request{URL: a.url.String(), Header: map[string][]string{"Accept": {"application/json"}}}
	known := len(mark) > len(own) && mark[:len(own)] == own
	if known {
		req.Header.Set("If-None-Match", mark[len(own):])
	}
	err = a.client.Do(ctx, req, func(r *provider.Response) error {
		var err error
		if loaded.Set, err = Decode(r.Body); err != nil {
			return err
		}
		if tag := r.Header.Get("ETag"); tag != "" && len(tag) <= maxMark {
			loaded.Mark = own + tag
		}
		return nil
	})
	failed, ours := errors.AsType[*provider.Error](err)
	switch {
	case err == nil:
		return loaded, nil
	case !ours:
		return Loaded{}, err
	case known && failed.Status == 304 && sameTag(failed.ETag, mark[len(own):]):
		return Loaded{Mark: mark}, nil
	case known && failed.Status == 304:
		return a.Load(ctx, "") // the cache may have compared another version: request the full document
	case failed.Kind == provider.KindTooLarge:
		return Loaded{}, tooLarge()
	case failed.Kind == provider.KindCancelled:
		return Loaded{}, failed
	default:
		return Loaded{}, fault.New(fault.Upstream, "fee_rules_unreachable", "The fee rules cannot be read: %v. The active rules are unchanged.", failed)
	}
}

// sameTag reports whether a 304 response refers to the requested ETag. A proxy may have
// weakened the ETag.
func sameTag(got, requested string) bool {
	return strings.TrimPrefix(got, "W/") == strings.TrimPrefix(requested, "W/")
}
