package feed

import (
	"context"
	"strings"
	"testing"

	"assay/internal/provider"
)

// wrapped reads a response with a list of numbers. It returns the numbers, joined into one
// text, and the member time.
func wrapped(doc string) (rows string, at Cell, err error) {
	cells := make([]Cell, 1)
	err = Read(context.Background(), "src", strings.NewReader(doc), nil, func(r *Reader) error {
		return r.Wrapped("items", func() error {
			c, err := r.Cell()
			rows += string(c.Text)
			return err
		}, []string{"time"}, cells)
	})
	return rows, cells[0], err
}

func TestWrapped_FindsListAmongOtherMembers(t *testing.T) {
	for doc, want := range map[string]string{
		`{"items":[1,2]}`: "12",
		`{"success":true,"time":7,"items":{"a":1,"b":2},"more":{"items":[9]}}`: "12",
		`{"items":[1,2],"time":7,"success":"true"}`:                            "12",
		`{"msg":"ok","items":[1],"error":null}`:                                "1",
	} {
		rows, at, err := wrapped(doc)
		if err != nil || rows != want || strings.Contains(doc, "time") != (string(at.Text) == "7") {
			t.Errorf("%s: got rows %q, time %q, error %v; want rows %q", doc, rows, at.Text, err, want)
		}
	}
}

func TestWrapped_RejectsErrorResponses(t *testing.T) {
	for doc, want := range map[string]string{
		`{"success":false,"error":"bad_request"}`:            "the provider refused the request: bad_request",
		`{"success":false,"items":null,"msg":"Wrong input"}`: "the provider refused the request: Wrong input",
		`{"success":false,"items":7}`:                        "the provider refused the request without a reason",
		`{"items":[1],"success":false}`:                      "the provider refused the request without a reason",
		`{"success":0,"items":[1]}`:                          "the provider refused the request without a reason",
		`{"success":null,"items":[1]}`:                       "the provider refused the request without a reason",
		`{"code":1,"message":"You need to be logged in"}`:    "the provider refused the request: You need to be logged in",
		`{}`:                          "response without items",
		`{"items":null}`:              "response without items",
		`{"items":[]}`:                "the list is empty",
		`{"success":true,"items":{}}`: "the list is empty",
		`{"items":"none"}`:            "expected an array, found a string",
		`{"items":[1],"items":[2]}`:   "member items given twice",
		`{"success":true,"items":[1],"success":false}`:        "member success given twice",
		`{"success":true,"time":1,"time":null,"items":[1,2]}`: "member time given twice",
		`[1,2]`: "expected an object, found an array",
	} {
		_, _, err := wrapped(doc)
		if provider.KindOf(err) != provider.KindProtocol || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", doc, err, want)
		}
	}
}

func TestWrapped_RecognizesRateLimitMessages(t *testing.T) {
	for _, reason := range []string{"Too many requests", "rate limit exceeded", "ratelimited", "Slow down!", "Daily limit exceeded"} {
		_, _, err := wrapped(`{"success":false,"error":"` + reason + `"}`)
		if provider.KindOf(err) != provider.KindRateLimited || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got error %v, want kind %s", reason, err, provider.KindRateLimited)
		}
	}
}
