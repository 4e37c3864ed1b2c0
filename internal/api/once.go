package api

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"assay/internal/fault"
	"assay/internal/idempotency"
)

// keyRule says whether a route takes an Idempotency-Key. On a route that takes
// none the header means nothing.
type keyRule int

const (
	noKey keyRule = iota
	keyTaken
	keyRequired
)

const (
	keyHeader   = "Idempotency-Key"
	keyReplayed = "Idempotency-Replayed"
)

// takeKey checks a request's Idempotency-Key. What is read of a body that has one
// is digested on its way.
func (c *call) takeKey(op *operation) error {
	if op.body == nil || op.body.key == noKey {
		return nil
	}
	given := c.Header.Values(keyHeader)
	switch {
	case len(given) == 0 && op.body.key == keyTaken:
		return nil
	case len(given) == 0:
		return fault.New(fault.Invalid, "idempotency_key_required",
			"This route requires an Idempotency-Key header: a unique value per operation. Reuse it when you retry.")
	case len(given) > 1 || !isKey(given[0]):
		return fault.New(fault.Invalid, "invalid_idempotency_key", "Send one Idempotency-Key header of 1 to %d printable ASCII characters.", idempotency.MaxKey)
	}
	c.onceKey, c.money, c.digest = given[0], op.body.money, sha256.New()
	for _, part := range []string{c.URL.EscapedPath(), c.URL.RawQuery} {
		_, _ = io.WriteString(c.digest, strconv.Itoa(len(part))+" "+part) // a hash takes everything
	}
	c.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(c.Body, c.digest), c.Body}
	return nil
}

func isKey(text string) bool {
	unprintable := func(b byte) bool { return b < ' ' || b > '~' }
	return text != "" && len(text) <= idempotency.MaxKey && !slices.ContainsFunc([]byte(text), unprintable)
}

// seal makes the answer of what a transaction did, and keeps it with that if the
// request has a key. It is called last, and again where the transaction is tried
// again.
type seal func(tx idempotency.ResponseStore, status int, location string, value any) error

// once does the work of a request that may have an Idempotency-Key, and answers
// it; the body has been read to its end. What was answered before under this key
// is answered again. user is whom the request is about.
func (s *server) once(w http.ResponseWriter, c *call, user string, work func(seal) error) error {
	a, replayed, err := s.answerOnce(c, user, work)
	if err != nil {
		return err
	}
	if replayed {
		w.Header().Set(keyReplayed, "true")
	}
	if a.Location != "" {
		w.Header().Set("Location", a.Location)
	}
	send(w, a.Status, a.ContentType, a.Body)
	return nil
}

// answerOnce is once without the sending. Its error is never of a kind that is
// kept.
func (s *server) answerOnce(c *call, user string, work func(seal) error) (a idempotency.Response, replayed bool, err error) {
	var made idempotency.Response
	render := func(_ idempotency.ResponseStore, status int, location string, value any) error {
		body, err := json.Marshal(value, encoding())
		made = idempotency.Response{Status: status, ContentType: jsonType, Location: location, Body: body}
		if !c.money {
			made.Expires = s.Now().Add(idempotency.Retention)
		}
		return err
	}
	if c.onceKey == "" {
		err := work(render)
		return made, false, err
	}
	k := idempotency.Key{Route: c.Method + " " + c.route, Role: c.role, User: user, Key: c.onceKey, Money: c.money}
	request := idempotency.Digest(c.digest.Sum(nil))
	leave, err := s.flights.enter(k, request)
	if err != nil {
		return a, false, err
	}
	defer leave()
	if kept, err := s.kept(c, k, request); kept != nil || err != nil {
		return valueOf(kept), true, err
	}
	err = work(func(tx idempotency.ResponseStore, status int, location string, value any) error {
		if err := render(tx, status, location, value); err != nil {
			return err
		}
		made.Request = request
		return tx.StoreResponse(k, made)
	})
	if err == nil {
		return made, false, nil
	}
	return s.keepRefusal(c, k, request, err)
}

// keepRefusal keeps that the work was refused, unless that says nothing of the
// next attempt. Another instance may have answered meanwhile, or this one, if the
// outcome of its commit is unknown: then that is the answer.
func (s *server) keepRefusal(c *call, k idempotency.Key, request idempotency.Digest, refusal error) (a idempotency.Response, replayed bool, err error) {
	p, _, _ := explain(refusal)
	final := slices.Contains([]int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}, p.Status)
	if k.Money && (final || errors.Is(refusal, idempotency.ErrKeyUsed)) {
		if kept, err := s.done(c, k, request); kept != nil || err != nil {
			return valueOf(kept), true, err
		}
	}
	err = refusal
	if final {
		a = idempotency.Response{ // not for ever, since nothing was done
			Request: request, Status: p.Status, ContentType: problemType, Body: c.problem(p), Expires: s.Now().Add(idempotency.Retention),
		}
		if err = s.Answers.StoreResponse(c.Context(), k, a); err == nil {
			return a, false, nil
		}
	}
	if kept, again := s.kept(c, k, request); kept != nil || (again != nil && errors.Is(err, idempotency.ErrKeyUsed)) {
		return valueOf(kept), true, again
	}
	return idempotency.Response{}, false, err
}

// done returns the answer to a request that moved money, or nil if none did: an
// error if that is lost. The ledger is asked first: whatever it has was answered.
func (s *server) done(c *call, k idempotency.Key, request idempotency.Digest) (*idempotency.Response, error) {
	id, err := s.Answers.PostedUnder(c.Context(), k.Scope(), k.Key)
	if err != nil || id == 0 {
		return nil, err
	}
	kept, err := s.kept(c, k, request)
	if kept == nil && err == nil {
		err = fault.New(fault.Conflict, "answer_lost",
			"The request of this Idempotency-Key succeeded, but its stored response is lost. Nothing was done again. "+
				"Find its result as transaction %d in the wallet's entries, and, for a purchase, in the buyer's trades.", id)
	}
	return kept, err
}

// kept returns what a request was answered, or nil; an error if it was another
// one.
func (s *server) kept(c *call, k idempotency.Key, request idempotency.Digest) (*idempotency.Response, error) {
	kept, err := s.Answers.StoredResponse(c.Context(), k)
	if err == nil && kept != nil && kept.Request != request {
		return nil, keyReused()
	}
	return kept, err
}

func valueOf(a *idempotency.Response) idempotency.Response {
	if a == nil {
		return idempotency.Response{}
	}
	return *a
}

func keyReused() error {
	return fault.New(fault.Unprocessable, "idempotency_key_reused",
		"This Idempotency-Key was used for another request. Use a unique value per operation.")
}

// flights are the requests with a key that this process is carrying out.
type flights struct {
	mu   sync.Mutex
	open map[idempotency.Key]idempotency.Digest
}

func newFlights() *flights { return &flights{open: map[idempotency.Key]idempotency.Digest{}} }

// enter notes that a request is carried out until leave is called. It refuses
// while one of the same key is.
func (f *flights) enter(k idempotency.Key, request idempotency.Digest) (leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch first, there := f.open[k]; {
	case there && first != request:
		return nil, keyReused()
	case there:
		return nil, &refusal{
			status: http.StatusConflict, code: "request_in_progress",
			detail: "The first request of this Idempotency-Key is still being carried out; ask again for its answer.",
			header: http.Header{"Retry-After": {"1"}},
		}
	}
	f.open[k] = request
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, k)
	}, nil
}
