package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"assay/internal/diskfile"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// The names of the places.
const (
	ECBName  = "ecb"
	FileName = "file"
)

// ECBHost limits the requests of all processes to the European Central Bank. The bank
// states no limit and publishes new rates once a day.
func ECBHost() provider.Host {
	return provider.Host{Limit: provider.Limit{Requests: 6, Per: time.Hour}, Quota: provider.Quota{Day: 24}}
}

// ECBOptions returns o with short timeouts, so that a run waits only some seconds.
func ECBOptions(o provider.Options) provider.Options {
	o.Provider, o.Limit = ECBName, ECBHost().Limit
	o.MaxBody, o.Attempts = maxBytes, 2
	o.Timeout, o.Total = 10*time.Second, 15*time.Second
	return o
}

// ECB is the daily file of the European Central Bank, published at about 16:00
// in Frankfurt on working days.
type ECB struct {
	client *provider.Client
	url    string
}

// The address of the file, in two parts.
const (
	ecbBase = "https://www.ecb.europa.eu"
	ecbPath = "/stats/eurofxref/eurofxref-daily.xml"
)

// ECBHas reports whether the daily file usually has a currency. It sends no request.
func ECBHas(currency money.Currency) bool {
	const all = "EUR USD JPY CZK DKK GBP HUF PLN RON SEK CHF ISK NOK TRY AUD BRL CAD CNY HKD IDR ILS INR KRW MXN MYR NZD PHP SGD THB ZAR "
	return len(currency) == 3 && strings.Contains(all, string(currency)+" ")
}

// NewECB makes the place; client is made with ECBOptions. An empty base is the
// real host.
func NewECB(client *provider.Client, base string) *ECB {
	return &ECB{client: client, url: cmp.Or(strings.TrimSuffix(base, "/"), ecbBase) + ecbPath}
}

// Name implements Place.
func (*ECB) Name() string { return ECBName }

// Pace implements Place.
func (*ECB) Pace() Pace { return Pace{Every: 4 * time.Hour, Again: time.Hour} }

// Rates implements Place.
func (e *ECB) Rates(ctx context.Context, base money.Currency) (rates pricing.Rates, err error) {
	err = e.client.Do(ctx, provider.Request{URL: e.url}, func(r *provider.Response) error {
		var err error
		if rates, err = readXML(r.Body, base); err != nil {
			return provider.Protocol(ECBName, "the daily file %v", err)
		}
		return nil
	})
	return rates, err
}

// File is a file on this machine, read at each run: XML as the European Central
// Bank publishes it, or lines such as EUR=1.0834@2026-11-20.
type File struct{ path string }

// NewFile makes the place.
func NewFile(path string) *File { return &File{path} }

// Name implements Place.
func (*File) Name() string { return FileName }

// Pace implements Place.
func (*File) Pace() Pace { return Pace{} }

// Rates implements Place.
func (f *File) Rates(_ context.Context, base money.Currency) (pricing.Rates, error) {
	rates, err := f.read(base)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("cannot be read: %w", pe.Err) // without the path
	}
	if err != nil {
		return nil, fmt.Errorf("the file of rates %w", err)
	}
	return rates, nil
}

func (f *File) read(base money.Currency) (pricing.Rates, error) {
	file, err := diskfile.OpenRegular(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read(file, base)
}
