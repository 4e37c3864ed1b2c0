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

// Names of the sources.
const (
	ECBName  = "ecb"
	FileName = "file"
)

// ECBHost returns the limits for the requests of all processes to the European Central Bank.
// The bank documents no limit, but it publishes new rates only once a day.
func ECBHost() provider.Host {
	return provider.Host{Limit: provider.Limit{Requests: 6, Per: time.Hour}, Quota: provider.Quota{Day: 24}}
}

// ECBOptions returns o with the options for NewECB. The timeouts are short, so that a
// refresh waits only some seconds.
func ECBOptions(o provider.Options) provider.Options {
	o.Provider, o.Limit = ECBName, ECBHost().Limit
	o.MaxBody, o.Attempts = maxBytes, 2
	o.Timeout, o.Total = 10*time.Second, 15*time.Second
	return o
}

// ECB reads the daily file of the European Central Bank. The bank publishes it on working
// days at about 16:00 in Frankfurt.
type ECB struct {
	client *provider.Client
	url    string
}

// The URL of the daily file, in two parts.
const (
	ecbBase = "https://www.ecb.europa.eu"
	ecbPath = "/stats/eurofxref/eurofxref-daily.xml"
)

// ECBHas reports whether the daily file usually contains a currency. It sends no request.
func ECBHas(currency money.Currency) bool {
	const all = "EUR USD JPY CZK DKK GBP HUF PLN RON SEK CHF ISK NOK TRY AUD BRL CAD CNY HKD IDR ILS INR KRW MXN MYR NZD PHP SGD THB ZAR "
	return len(currency) == 3 && strings.Contains(all, string(currency)+" ")
}

// NewECB returns an ECB. The client must use ECBOptions. If base is empty, the bank's real
// host is used.
func NewECB(client *provider.Client, base string) *ECB {
	return &ECB{client: client, url: cmp.Or(strings.TrimSuffix(base, "/"), ecbBase) + ecbPath}
}

// Name implements Source.
func (*ECB) Name() string { return ECBName }

// Schedule implements Source.
func (*ECB) Schedule() Schedule { return Schedule{Every: 4 * time.Hour, AfterError: time.Hour} }

// Rates implements Source.
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

// File reads a local file for each refresh. The file has the XML format of the European
// Central Bank, or lines such as EUR=1.0834@2026-11-20.
type File struct{ path string }

// NewFile returns a File with a path.
func NewFile(path string) *File { return &File{path} }

// Name implements Source.
func (*File) Name() string { return FileName }

// Schedule implements Source.
func (*File) Schedule() Schedule { return Schedule{} }

// Rates implements Source.
func (f *File) Rates(_ context.Context, base money.Currency) (pricing.Rates, error) {
	rates, err := f.read(base)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("cannot be read: %w", pe.Err) // without the path
	}
	if err != nil {
		return nil, fmt.Errorf("file of exchange rates: %w", err)
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
