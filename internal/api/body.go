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

// body describes the body that an operation takes.
type body struct {
	limit    int64
	optional bool
	like     any // a value of a type with the body's shape
	key      keyRule
	money    bool // responses under a key never expire
}

// admitBody checks the body headers of a request and bounds the body before anything is read.
// It reports whether there is a body. The caller calls done after the last use of the body.
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
		// As at the end of a body: no deadline ends the work.
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

// refuseContent accepts an empty JSON object, which many clients send with every
// POST, and refuses any other body without reading more of it.
func refuseContent(body io.Reader) error {
	const most = 64
	text, err := io.ReadAll(io.LimitReader(body, most))
	switch {
	case err != nil:
		return err
	case len(text) == most, strings.Join(strings.Fields(string(text)), "") != "{}":
		return fault.New(fault.Invalid, "unexpected_body", "This request takes no body. Send none, or {}.")
	}
	return nil
}

func bodyRequired() error {
	return fault.New(fault.Invalid, "body_required", "This route needs a JSON body.")
}

// hasBody reports whether a body follows; only a chunked one must be looked at.
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

// checkMedia refuses what is not plain JSON.
func checkMedia(h http.Header) error {
	if !isJSON(h.Get("Content-Type")) {
		return &refusal{
			status: http.StatusUnsupportedMediaType, code: "unsupported_media_type",
			detail: "The body must be JSON in UTF-8, announced by Content-Type: application/json.",
			header: http.Header{"Accept": {"application/json"}},
		}
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &refusal{
			status: http.StatusUnsupportedMediaType, code: "unsupported_encoding",
			detail: "The body must not be compressed.",
			header: http.Header{"Accept-Encoding": {"identity"}},
		}
	}
	return nil
}

// isJSON reports whether a Content-Type is that of JSON in UTF-8.
func isJSON(contentType string) bool {
	const plain = "application/json"
	if contentType == plain {
		return true // as nearly all write it; parsing takes a while
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == plain && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

func tooLarge(limit int64) string {
	return fmt.Sprintf("The body is larger than %d MiB, the most that this route takes.", limit>>20)
}
