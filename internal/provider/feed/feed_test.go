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

// sink keeps what it is given, as text.
type sink struct {
	quotes, rejects []string
	restarts        int
	refuse          error
}

func (s *sink) Restart() { *s = sink{restarts: s.restarts + 1, refuse: s.refuse} }

func (s *sink) Quote(q *provider.Quote) error {
	s.quotes = append(s.quotes, strings.TrimSuffix(q.Market+" "+q.Name+" "+q.Phase, " "))
	return s.refuse
}

func (s *sink) Reject(market, name, reason string) {
	s.rejects = append(s.rejects, strings.TrimSpace(market+" "+name+": "+reason))
}

var rowNames = []string{"name", "market", "phase"}

// readRows reads an array of rows of names, markets and phases.
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

func TestRead_FurtherRowsOfAnItemOnAMarketAreForTheSinkAndCountAsRejected(t *testing.T) {
	var s sink
	const doc = "\xef\xbb\xbf \n" + `[{"name":"A","market":"m"},{"name":"A","market":"n"},{"name":"A","market":"m","phase":"Ruby"},{"name":"Ruby","market":"m"},
		{"name":"A","market":"m"},{"market":"m","name":"A","phase":"Ruby"},{"name":"★ \"B\"","market":"m","unread":{"name":"C"}},{"NAME":"D","name":"E","market":"m"}]`
	if err := Read(context.Background(), "src", strings.NewReader(doc), &s, readRows); err != nil {
		t.Fatal(err)
	}
	if want := []string{"m A", "n A", "m A Ruby", "m Ruby", "m A", "m A Ruby", `m ★ "B"`, "m E"}; !slices.Equal(s.quotes, want) {
		t.Errorf("quotes %q, want %q", s.quotes, want)
	}
	if len(s.rejects) > 0 || s.restarts != 1 {
		t.Errorf("rejects %q; %d restarts", s.rejects, s.restarts)
	}
	err := Read(context.Background(), "src", strings.NewReader(`[{"name":"A","market":"m"},{"name":"A","market":"m"},{"name":"A","market":"m"}]`), &s, readRows)
	if want := "more rows rejected than accepted (2 and 1); most often: name given twice (2 times)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("mostly duplicates: error %v, want %q", err, want)
	}
}

func TestRow_RejectsWhatIsNone(t *testing.T) {
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
			t.Errorf("%.60s: quotes %q, rejects %q, error %v", row, s.quotes, s.rejects, err)
		}
	}
}

func TestRead_RefusesAnAnswerOfWhichMostIsRejected(t *testing.T) {
	var s sink
	err := Read(context.Background(), "src", strings.NewReader(`[{"name":"A"},7,8,{"name":9},{"name":"A"}]`), &s, readRows)
	if provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), "more rows rejected than accepted (4 and 1); most often: row is not an object (2 times)") {
		t.Errorf("error %v", err)
	}
	err = Read(context.Background(), "src", strings.NewReader(`[{"name":"A"},7]`), &s, readRows)
	if err != nil {
		t.Errorf("as many quotes as rejects: %v", err)
	}
}

func TestReader_ReadsWhatIsWithinARow(t *testing.T) {
	const doc = `{"a\u0062":{"list":[1,"two",null,{"x":3}],"of":{"x":"\u2605","y":[]},"no":null}}`
	var got []string
	err := Read(context.Background(), "src", strings.NewReader(doc), nil, func(r *Reader) error {
		return r.Object(func(name []byte) error {
			got = append(got, string(name))
			cells, inner := make([]Cell, 4), make([]Cell, 2)
			if ok, err := r.Row([]string{"list", "of", "no", "absent"}, cells); !ok || err != nil {
				return fmt.Errorf("no row: %w", err)
			}
			_ = r.Each(cells[0], func(c Cell) error { got = append(got, fmt.Sprint(c.Kind, string(c.Text))); return nil })
			_ = r.Members(cells[1], func(name []byte, c Cell) error { got = append(got, string(name)+string(c.Text)); return nil })
			for _, c := range cells[1:] {
				got = append(got, fmt.Sprint(r.Within(c, []string{"x", "z"}, inner), string(inner[0].Text), inner[1].Kind))
			}
			_ = r.Each(cells[1], func(Cell) error { return io.ErrUnexpectedEOF })            // no array
			_ = r.Members(cells[0], func([]byte, Cell) error { return io.ErrUnexpectedEOF }) // no object
			if r.Within(cells[0], []string{"x"}, inner) {
				got = append(got, "an array is no object")
			}
			r.Count(1)
			return nil
		})
	})
	want := []string{"ab", "31", "2two", "1", `4{"x":3}`, "x★", "y[]", "true★0", "true0", "true0"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q, error %v", got, want, err)
	}
}

func TestRead_SaysHowAnAnswerIsWrong(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	own := &provider.Error{Provider: "src", Kind: provider.KindCut}
	for name, c := range map[string]struct {
		ctx    context.Context
		body   io.Reader
		kind   provider.Kind
		detail string
	}{
		"empty":             {nil, strings.NewReader(""), provider.KindProtocol, "empty body"},
		"null":              {nil, strings.NewReader("null"), provider.KindProtocol, "null instead of"},
		"html":              {nil, strings.NewReader("<html>"), provider.KindProtocol, "HTML instead of JSON"},
		"an object":         {nil, strings.NewReader("{}"), provider.KindProtocol, "expected an array, found an object"},
		"cut":               {nil, strings.NewReader(`[{"name":"A"`), provider.KindProtocol, "is truncated"},
		"cut behind a row":  {nil, strings.NewReader(`[{"name":"A"},`), provider.KindProtocol, "is truncated"},
		"malformed":         {nil, strings.NewReader(`[{"name":"A"}}`), provider.KindProtocol, "malformed JSON at byte 13"},
		"no number":         {nil, strings.NewReader(`[{"name":NaN}]`), provider.KindProtocol, "malformed JSON at byte 9"},
		"invalid utf-8":     {nil, strings.NewReader("[{\"name\":\"\xff\"}]"), provider.KindProtocol, "malformed JSON"},
		"two documents":     {nil, strings.NewReader(`[{"name":"A"}][]`), provider.KindProtocol, "unexpected data after the document"},
		"rubbish behind":    {nil, strings.NewReader(`[{"name":"A"}]<`), provider.KindProtocol, "malformed JSON at byte 14"},
		"a row too large":   {nil, strings.NewReader(`[{"name":"` + strings.Repeat("n", MaxRow+100<<10) + `"}]`), provider.KindTooLarge, "a row exceeds 1048576 bytes"},
		"nested too deeply": {nil, strings.NewReader(strings.Repeat("[", 20_000)), provider.KindProtocol, "malformed JSON"},
		"a transport's":     {nil, io.MultiReader(strings.NewReader(`[`), iotest.ErrReader(own)), provider.KindCut, ""},
		"anything else":     {nil, io.MultiReader(strings.NewReader(`[`), iotest.ErrReader(errors.New("bad luck\xff"))), provider.KindProtocol, "bad luck\uFFFD"},
		"a caller's end":    {canceled, io.MultiReader(strings.NewReader(`[`), iotest.ErrReader(context.Canceled)), "", "canceled"},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		err := Read(ctx, "src", c.body, &sink{}, readRows)
		if err == nil || provider.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%s: %v, want kind %q with %q", name, err, c.kind, c.detail)
		}
	}
}

func TestRead_TakesARowOfExactlyTheBound(t *testing.T) {
	const around = `{"name":"A","x":""}`
	for size, kind := range map[int]provider.Kind{MaxRow: "", MaxRow + 1: provider.KindTooLarge} {
		row := strings.Replace(around, `""`, `"`+strings.Repeat("x", size-len(around))+`"`, 1)
		err := Read(context.Background(), "src", strings.NewReader("["+row+"]"), &sink{}, readRows)
		if provider.KindOf(err) != kind || (err == nil) != (kind == "") {
			t.Errorf("a row of %d bytes: %v", len(row), err)
		}
	}
}

func TestRead_ReturnsTheSinksErrorAsItIs(t *testing.T) {
	s := sink{refuse: errors.New("enough")}
	if err := Read(context.Background(), "src", strings.NewReader(`[{"name":"A"}]`), &s, readRows); err != s.refuse {
		t.Errorf("error %v", err)
	}
}

func TestRead_BoundsTheItemsOfAnAnswer(t *testing.T) {
	err := Read(context.Background(), "src", strings.NewReader("[]"), drop{}, func(r *Reader) error {
		q := provider.Quote{Market: "m"}
		for i := range MaxItems + 1 {
			q.Name = fmt.Sprint(i)
			for _, q.Market = range []string{"m", "n"} { // markets are no items
				if err := r.Quote(&q); err != nil {
					return fmt.Errorf("item %d: %w", i, err)
				}
			}
		}
		return nil
	})
	if provider.KindOf(err) != provider.KindTooLarge || !strings.Contains(err.Error(), "more than 500000 items") {
		t.Errorf("error %v", err)
	}
}

type drop struct{}

func (drop) Restart()                      {}
func (drop) Quote(*provider.Quote) error   { return nil }
func (drop) Reject(string, string, string) {}

// A sink keeps the last quote of what was rejected, so it must know the whole name.
func TestReject_PassesWholeNamesOn(t *testing.T) {
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
			t.Errorf("%.20s…, %d bytes, was passed on as %q", name, len(name), s.rejects)
		}
	}
}

func TestClip_CutsBetweenRunes(t *testing.T) {
	for in, want := range map[string]string{
		"short": "short", "bad \xff": "bad \uFFFD", strings.Repeat("n", 80): strings.Repeat("n", 80), strings.Repeat("n", 81): strings.Repeat("n", 80) + "…",
		strings.Repeat("★", 30): strings.Repeat("★", 26) + "…", "n" + strings.Repeat("★", 30): "n" + strings.Repeat("★", 26) + "…",
	} {
		if got := Clip([]byte(in)); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
