// Package assay is a client of an Assay price server.
//
// Its methods are the operations of the server's OpenAPI document (package api). This package adds
// credentials, retries, pagination, the change feed and the verification of webhooks.
package assay

import (
	"context"
	"errors"
	"net/http"
	"time"

	"assay/client/go/api"
)

// Options are the credentials and limits of a client. The zero value is valid.
type Options struct {
	Token      string // a platform token, an administrator's token or an API key
	SyncSecret string // for programs that only start refreshes

	// HTTP sends the requests. By default, a response must begin within two minutes.
	HTTP *http.Client
	// Attempts is the maximum number of attempts per request; 5 by default.
	Attempts int
	// MaxWait is the longest wait between two attempts; 1 minute by default. If the server
	// demands a longer wait, the client returns the error at once.
	MaxWait time.Duration
}

// Client calls a server. It is safe for concurrent use.
//
// Each method of the embedded client returns an *[Error] for a status of 400 or more. If the error
// is nil, the field for the successful response is set, such as JSON200.
type Client struct {
	*api.ClientWithResponses
	wait func(context.Context, time.Duration) error
}

// New returns a client of the server at an address such as https://prices.example.
func New(baseURL string, o Options) (*Client, error) {
	if o.HTTP == nil {
		base, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			return nil, errors.New("http.DefaultTransport is replaced: set Options.HTTP")
		}
		transport := base.Clone()
		transport.ResponseHeaderTimeout = 2 * time.Minute // longer than any long poll
		o.HTTP = &http.Client{Transport: transport}
	}
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.MaxWait <= 0 {
		o.MaxWait = time.Minute
	}
	generated, err := api.NewClientWithResponses(baseURL, api.WithHTTPClient(&retrier{Options: o, wait: sleep}))
	if err != nil {
		return nil, err
	}
	return &Client{ClientWithResponses: generated, wait: sleep}, nil
}

// sleep waits for a duration or the end of the context.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
