package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"assay/internal/catalog"
	"assay/internal/provider"
)

// sink records its calls as text.
type sink struct {
	quotes, rejects []string
	restarts        int
	err             error
}

func (s *sink) Restart() { *s = sink{restarts: s.restarts + 1, err: s.err} }

func (s *sink) Quote(q *provider.Quote) error {
	s.quotes = append(s.quotes, strings.TrimSuffix(q.Market+" "+q.Name+" "+q.Phase, " "))
	return s.err
}

func (s *sink) Reject(market, name, reason string) {
	s.rejects = append(s.rejects, strings.TrimSpace(market+" "+name+": "+reason))
}

var rowNames = []string{"name", "market", "phase"}

// readRows reads an array of rows with a name, a market and a phase.
func readRows(r *Reader) error {
	cells := make([]Cell, len(rowNames))
	return r.Array(func() error {
		ok, err := r.Row(rowNames, cells)
		if !ok || err != nil {
			return err
		}
		name, ok := r.Name(string(cells[1].Text), cells[0])
		if !ok {
			return nil
		}
		return r.Quote(&provider.Quote{Name: name, Market: string(cells[1].Text), Phase: string(cells[2].Text)})
	})
}

func TestRead_CountsRepeatedQuotesAsRejected(t *testing.T) {
	var s sink
	const doc = "\xef\xbb\xbf \n" + `[{"name":"A","market":"m"},{"name":"A","market":"n"},{"name":"A","market":"m","phase":"Ruby"},{"name":"Ruby","market":"m"},
		{"name":"A","market":"m"},{"market":"m","name":"A","phase":"Ruby"},{"name":"★ \"B\"","market":"m","unread":{"name":"C"}},{"NAME":"D","name":"E","market":"m"}]`
	if err := Read(context.Background(), "src", strings.NewReader(doc), &s, readRows); err != nil {
		t.Fatal(err)
	}
	if want := []string{"m A", "n A", "m A Ruby", "m Ruby", "m A", "m A Ruby", `m ★ "B"`, "m E"}; !slices.Equal(s.quotes, want) {
		t.Errorf("got quotes %q, want %q", s.quotes, want)
	}
	if len(s.rejects) > 0 || s.restarts != 1 {
		t.Errorf("got rejects %q, %d restarts; want none, 1", s.rejects, s.restarts)
	}
	err := Read(context.Background(), "src", strings.NewReader(`[{"name":"A","market":"m"},{"name":"A","market":"m"},{"name":"A","market":"m"}]`), &s, readRows)
	if want := "more rows rejected than accepted (2 and 1); most often: name given twice (2 times)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("mostly duplicates: got error %v, want %q", err, want)
	}
}

func TestRow_RejectsInvalidRows(t *testing.T) {
	for row, reason := range map[string]string{
		`{"name":"A","name":"B"}`:      RejectTwice,
		`{"name":null,"name":"A"}`:     RejectTwice,
		`{"name":"A","n\u0061me":"B"}`: RejectTwice,
		`["name"]`:                     RejectRow,
		`"name"`:                       RejectRow,
		`null`:                         RejectRow,
		`7`:                            RejectRow,
		`{}`:                           RejectNoName,
		`{"name":null}`:                RejectNoName,
		`{"name":7}`:                   RejectNameKind,
		`{"name":{}}`:                  RejectNameKind,
		`{"name":""}`:                  RejectName,
		`{"name":"\u0000"}`:            RejectName,
		`{"name":"` + strings.Repeat("n", catalog.MaxName+1) + `"}`: RejectName,
	} {
		var s sink
		err := Read(context.Background(), "src", strings.NewReader(`[{"name":"good"},`+row+`]`), &s, readRows)
		if err != nil || len(s.quotes) != 1 || len(s.rejects) != 1 || !strings.HasSuffix(s.rejects[0], reason) {
			t.Errorf("%.60s: got quotes %q, rejects %q, error %v; want one reject with %q", row, s.quotes, s.rejects, err, reason)
		}
	}
}

func TestRead_FailsWhenMostRowsAreRejected(t *testing.T) {
	var s sink
	err := Read(context.Background(), "src", strings.NewReader(`[{"name":"A"},7,8,{"name":9},{"name":"A"}]`), &s, readRows)
	if provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), "more rows rejected than accepted (4 and 1); most often: row is not an object (2 times)") {
		t.Errorf("got error %v, want the counts and the most frequent reason", err)
	}
	err = Read(context.Background(), "src", strings.NewReader(`[{"name":"A"},7]`), &s, readRows)
	if err != nil {
		t.Errorf("as many quotes as rejects: got error %v, want none", err)
	}
}

func TestReader_ReadsNestedValues(t *testing.T) {
	const doc = `{"a\u0062":{"list":[1,"two",null,{"x":3}],"of":{"x":"\u2605","y":[]},"no":null}}`
	var got []string
	err := Read(context.Background(), "src", strings.NewReader(doc), nil, func(r *Reader) error {
		return r.Object(func(name []byte) error {
			got = append(got, string(name))
			cells, inner := make([]Cell, 4), make([]Cell, 2)
			if ok, err := r.Row([]string{"list", "of", "no", "absent"}, cells); !ok || err != nil {
				return fmt.Errorf("invalid row: %w", err)
			}
			_ = r.Each(cells[0], func(c Cell) error { got = append(got, fmt.Sprint(c.Kind, string(c.Text))); return nil })
			_ = r.Members(cells[1], func(name []byte, c Cell) error { got = append(got, string(name)+string(c.Text)); return nil })
			for _, c := range cells[1:] {
				got = append(got, fmt.Sprint(r.Within(c, []string{"x", "z"}, inner), string(inner[0].Text), inner[1].Kind))
			}
			_ = r.Each(cells[1], func(Cell) error { return io.ErrUnexpectedEOF })            // not an array
			_ = r.Members(cells[0], func([]byte, Cell) error { return io.ErrUnexpectedEOF }) // not an object
			if r.Within(cells[0], []string{"x"}, inner) {
				got = append(got, "array read as an object")
			}
			r.Count(1)
			return nil
		})
	})
	want := []string{"ab", "31", "2two", "1", `4{"x":3}`, "x★", "y[]", "true★0", "true0", "true0"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got cells %q, want %q (error %v)", got, want, err)
	}
}

func TestRead_ClassifiesErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	own := &provider.Error{Provider: "src", Kind: provider.KindCut}
	for name, c := range map[string]struct {
		ctx    context.Context
		body   io.Reader
		kind   provider.Kind
		detail string
	}{
		"empty":                   {nil, strings.NewReader(""), provider.KindProtocol, "empty body"},
		"null":                    {nil, strings.NewReader("null"), provider.KindProtocol, "null instead of"},
		"html":                    {nil, strings.NewReader("<html>"), provider.KindProtocol, "HTML instead of JSON"},
		"object":                  {nil, strings.NewReader("{}"), provider.KindProtocol, "expected an array, found an object"},
		"truncated row":           {nil, strings.NewReader(`[{"name":"A"`), provider.KindProtocol, "is truncated"},
		"truncated after a row":   {nil, strings.NewReader(`[{"name":"A"},`), provider.KindProtocol, "is truncated"},
		"malformed":               {nil, strings.NewReader(`[{"name":"A"}}`), provider.KindProtocol, "malformed JSON at byte 13"},
		"invalid number":          {nil, strings.NewReader(`[{"name":NaN}]`), provider.KindProtocol, "malformed JSON at byte 9"},
		"invalid utf-8":           {nil, strings.NewReader("[{\"name\":\"\xff\"}]"), provider.KindProtocol, "malformed JSON"},
		"two documents":           {nil, strings.NewReader(`[{"name":"A"}][]`), provider.KindProtocol, "unexpected data after the document"},
		"data after the document": {nil, strings.NewReader(`[{"name":"A"}]<`), provider.KindProtocol, "malformed JSON at byte 14"},
		"row too large":           {nil, strings.NewReader(`[{"name":"` + strings.Repeat("n", MaxRow+100<<10) + `"}]`), provider.KindTooLarge, "a row exceeds 1048576 bytes"},
		"nested too deeply":       {nil, strings.NewReader(strings.Repeat("[", 20_000)), provider.KindProtocol, "malformed JSON"},
		"transport error":         {nil, io.MultiReader(strings.NewReader(`[`), iotest.ErrReader(own)), provider.KindCut, ""},
		"other error":             {nil, io.MultiReader(strings.NewReader(`[`), iotest.ErrReader(errors.New("read failed\xff"))), provider.KindProtocol, "read failed\uFFFD"},
		"cancelled context":       {canceled, io.MultiReader(strings.NewReader(`[`), iotest.ErrReader(context.Canceled)), "", "canceled"},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		err := Read(ctx, "src", c.body, &sink{}, readRows)
		if err == nil || provider.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%s: got error %v, want kind %q with %q", name, err, c.kind, c.detail)
		}
	}
}

func TestRead_AcceptsRowOfExactlyMaxRow(t *testing.T) {
	const around = `{"name":"A","x":""}`
	for size, kind := range map[int]provider.Kind{MaxRow: "", MaxRow + 1: provider.KindTooLarge} {
		row := strings.Replace(around, `""`, `"`+strings.Repeat("x", size-len(around))+`"`, 1)
		err := Read(context.Background(), "src", strings.NewReader("["+row+"]"), &sink{}, readRows)
		if provider.KindOf(err) != kind || (err == nil) != (kind == "") {
			t.Errorf("row of %d bytes: got error %v, want kind %q", len(row), err, kind)
		}
	}
}

func TestRead_ReturnsSinkErrorUnchanged(t *testing.T) {
	s := sink{err: errors.New("sink full")}
	if err := Read(context.Background(), "src", strings.NewReader(`[{"name":"A"}]`), &s, readRows); err != s.err {
		t.Errorf("got error %v, want the sink's error", err)
	}
}

func TestRead_LimitsItemsOfResponse(t *testing.T) {
	err := Read(context.Background(), "src", strings.NewReader("[]"), drop{}, func(r *Reader) error {
		q := provider.Quote{Market: "m"}
		for i := range MaxItems + 1 {
			q.Name = fmt.Sprint(i)
			for _, q.Market = range []string{"m", "n"} { // another market does not add an item
				if err := r.Quote(&q); err != nil {
					return fmt.Errorf("item %d: %w", i, err)
				}
			}
		}
		return nil
	})
	if provider.KindOf(err) != provider.KindTooLarge || !strings.Contains(err.Error(), "more than 500000 items") {
		t.Errorf("got error %v, want kind too large", err)
	}
}

type drop struct{}

func (drop) Restart()                      {}
func (drop) Quote(*provider.Quote) error   { return nil }
func (drop) Reject(string, string, string) {}

// A sink keeps the last quote of a rejected item, so it needs the whole name.
func TestReject_PassesWholeNames(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("★", 170): strings.Repeat("★", 170), strings.Repeat("n", 512): strings.Repeat("n", 512),
		strings.Repeat("n", 513): strings.Repeat("n", 80) + "…", strings.Repeat("n", 100) + "\xff": strings.Repeat("n", 80) + "…",
	} {
		var s sink
		_ = Read(context.Background(), "src", strings.NewReader(`[]`), &s, func(r *Reader) error {
			r.Reject("m", []byte(name), "why")
			return r.Skip()
		})
		if !slices.Equal(s.rejects, []string{"m " + want + ": why"}) {
			t.Errorf("name %.20s… of %d bytes: got rejects %q, want %q", name, len(name), s.rejects, want)
		}
	}
}

func TestClip_TruncatesBetweenRunes(t *testing.T) {
	for in, want := range map[string]string{
		"short": "short", "bad \xff": "bad \uFFFD", strings.Repeat("n", 80): strings.Repeat("n", 80), strings.Repeat("n", 81): strings.Repeat("n", 80) + "…",
		strings.Repeat("★", 30): strings.Repeat("★", 26) + "…", "n" + strings.Repeat("★", 30): "n" + strings.Repeat("★", 26) + "…",
	} {
		if got := Clip([]byte(in)); got != want {
			t.Errorf("Clip(%q) = %q, want %q", in, got, want)
		}
	}
}
