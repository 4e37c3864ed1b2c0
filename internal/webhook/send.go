package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"assay/internal/provider"
)

const (
	defaultTimeout = 10 * time.Second
	// maxResponse is the number of bytes that are read of a response. A connection can be used
	// again only after its response was read.
	maxResponse = 64 << 10
	// maxRetryAfter limits the wait that a receiver demands.
	maxRetryAfter = time.Hour
	// maxContent is the maximum number of characters of a Discord message.
	maxContent = 2000

	secretPrefix = "whsec_"
	secretBytes  = 32
)

// newClient returns a client that follows no redirects and connects to public addresses and
// allowed hosts only. It ignores the proxy settings of the environment, because a proxy
// would resolve host names without this check.
func newClient(o Options) *http.Client {
	return &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: o.Dialer.Dial, TLSHandshakeTimeout: o.Timeout, DisableCompression: true, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 1, MaxIdleConns: MaxWebhooks, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxResponse,
		},
	}
}

// message is an event, or a part of one, for a receiver.
type message struct {
	id   string
	kind string
	at   time.Time
	data json.RawMessage
	text string // for people
}

// newSecret returns a random secret.
func newSecret() string {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// sign returns the signature of a message as Standard Webhooks defines it.
func sign(secret, id, timestamp string, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return "", errors.New("the stored secret is not base64")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// encode returns the body of a message.
func (m *message) encode(f Format) ([]byte, error) {
	switch f {
	case Slack:
		return json.Marshal(map[string]string{"text": slackText(m.text)})
	case Discord:
		return json.Marshal(map[string]any{"content": shorten(m.text, maxContent), "allowed_mentions": map[string]any{"parse": []string{}}})
	default:
		return json.Marshal(struct {
			Type      string          `json:"type"`
			Timestamp time.Time       `json:"timestamp"`
			Data      json.RawMessage `json:"data"`
		}{m.kind, m.at.UTC(), m.data})
	}
}

// slackText escapes the characters that begin links and mentions.
func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// shorten returns at most n characters of a text.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// send sends a message once.
func (s *Service) send(ctx context.Context, h *Webhook, m *message) Outcome {
	began := time.Now()
	out, err := s.exchange(ctx, h, m)
	out.Duration = time.Since(began)
	if err != nil {
		out.Error = explain(err)
	}
	return out
}

func (s *Service) exchange(ctx context.Context, h *Webhook, m *message) (out Outcome, err error) {
	body, err := m.encode(h.Format)
	if err != nil {
		return out, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return out, errors.New("the address is not a valid URL: change the address of the webhook")
	}
	now := s.o.Store.Clock()
	stamp := strconv.FormatInt(now.Unix(), 10)
	secrets := []string{h.secret}
	if h.oldSecret != "" && now.Before(h.OldSecretUntil) {
		secrets = append(secrets, h.oldSecret)
	}
	var signatures []string
	for _, secret := range secrets {
		signature, err := sign(secret, m.id, stamp, body)
		if err != nil {
			return out, err
		}
		signatures = append(signatures, signature)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"assay"},
		"Webhook-Id": {m.id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {strings.Join(signatures, " ")},
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	out.Status = resp.StatusCode
	_, err = io.CopyN(io.Discard, resp.Body, maxResponse)
	switch {
	case resp.StatusCode/100 == 3:
		return out, errors.New("redirects are not followed: set the final address")
	case resp.StatusCode/100 != 2:
		out.retryAfter = retryAfter(resp.Header, now)
		return out, errors.New("status " + strconv.Itoa(resp.StatusCode))
	case err != nil && err != io.EOF:
		return out, err
	}
	return out, nil
}

// explain describes an error without the address, which can contain a secret.
func explain(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	timeout, _ := errors.AsType[net.Error](err)
	switch op, _ := errors.AsType[*net.OpError](err); {
	case errors.Is(err, provider.ErrGuarded):
		return "address is not public: add the host to WEBHOOK_ALLOW_HOSTS to allow it"
	case timeout != nil && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case op != nil && op.Op == "dial":
		return "connection failed"
	}
	return shorten(strings.ToValidUTF8(err.Error(), "?"), 200)
}

// retryAfter returns the wait that a response demands, or 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return min(max(time.Duration(n)*time.Second, 0), maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
