package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"assay/internal/fault"
)

// Limits of bodies, in bytes.
const (
	maxBody = 1 << 20
	maxPush = 32 << 20
)

// body describes the request body of an operation.
type body struct {
	limit    int64 // maximum size in bytes
	optional bool
	like     any // a value of the Go type that describes the body
	key      keyRule
	money    bool // true if responses stored under an Idempotency-Key never expire
}

// admitBody checks the body headers of a request and limits the size of the body. It
// reports whether there is a body. The caller must call done after its last use of the body.
func (s *server) admitBody(w http.ResponseWriter, r *http.Request, want *body) (there bool, done func(), err error) {
	limit := int64(maxBody)
	if want != nil {
		limit = want.limit
	}
	done = func() {}
	if r.ContentLength > limit {
		return false, done, &http.MaxBytesError{Limit: limit}
	}
	if r.ContentLength == 0 {
		// Without a body, a read deadline would cancel the request's context.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	} else {
		done = s.arrive(w, r, limit).done
	}
	there, err = hasBody(r)
	switch {
	case err != nil:
	case want == nil && there:
		there, err = false, refuseContent(r.Body)
	case want == nil || (want.optional && !there):
	case !there:
		err = bodyRequired()
	default:
		err = checkMedia(r.Header)
		r.Body = http.MaxBytesReader(w, r.Body, limit)
	}
	return there, done, err
}

// refuseContent refuses a body on a route without one. It accepts an empty JSON object,
// because many clients send it with every POST. It reads at most 64 bytes.
func refuseContent(body io.Reader) error {
	const most = 64
	text, err := io.ReadAll(io.LimitReader(body, most))
	switch {
	case err != nil:
		return err
	case len(text) == most, strings.Join(strings.Fields(string(text)), "") != "{}":
		return fault.New(fault.Invalid, "unexpected_body", "This request does not accept a body. Send no body, or {}.")
	}
	return nil
}

func bodyRequired() error {
	return fault.New(fault.Invalid, "body_required", "This route requires a JSON body.")
}

// hasBody reports whether a request has a body. It reads the first byte of a chunked body.
func hasBody(r *http.Request) (bool, error) {
	if r.ContentLength >= 0 {
		return r.ContentLength > 0, nil
	}
	buffered := bufio.NewReader(r.Body)
	_, err := buffered.Peek(1)
	r.Body = struct {
		io.Reader
		io.Closer
	}{buffered, r.Body}
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return true, err
}

// checkMedia returns an error unless the headers declare uncompressed JSON.
func checkMedia(h http.Header) error {
	if !isJSON(h.Get("Content-Type")) {
		return &refusal{
			status: http.StatusUnsupportedMediaType, code: "unsupported_media_type",
			detail: "The body must be JSON in UTF-8. Send Content-Type: application/json.",
			header: http.Header{"Accept": {"application/json"}},
		}
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &refusal{
			status: http.StatusUnsupportedMediaType, code: "unsupported_encoding",
			detail: "The body must not be compressed. Send it without Content-Encoding.",
			header: http.Header{"Accept-Encoding": {"identity"}},
		}
	}
	return nil
}

// isJSON reports whether a Content-Type means JSON in UTF-8.
func isJSON(contentType string) bool {
	const plain = "application/json"
	if contentType == plain {
		return true // the common case, without parsing
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == plain && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

func tooLarge(limit int64) string {
	return fmt.Sprintf("The body exceeds the limit of this route, %d MiB.", limit>>20)
}
