package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/config"
	"assay/internal/diskfile"
	"assay/internal/view"
)

// exportCmd writes all prices to a file.
type exportCmd struct {
	File     string `arg:"" help:"File to write. It appears when it is complete. - means standard output."`
	Format   string `enum:"parquet,csv,ndjson," default:"" placeholder:"FORMAT" help:"parquet, csv or ndjson. Default: by the name of the file."`
	AppID    int32  `complete:"game" placeholder:"ID" help:"Only this game, by its Steam app ID."`
	Fields   string `placeholder:"LIST" help:"More columns, separated by commas: interval, average, usedMarkets."`
	Currency string `placeholder:"CODE" help:"Convert all prices to this currency, such as EUR, by the exchange rates in force."`
}

func (*exportCmd) examples() []example {
	return []example{
		{"export prices.parquet", "write all prices as Parquet, for DuckDB, pandas or Spark"},
		{"export prices.csv --app-id 730 --fields interval,average", "write the prices of CS2 as CSV, with their intervals and averages"},
		{"export - --format ndjson", "print one JSON object per price"},
	}
}

// exportTimeout limits an export. The server also limits it.
const exportTimeout = 5 * time.Minute

// exported is the result that --json prints.
type exported struct {
	File   string `json:"file"`
	Items  int64  `json:"items"`
	Change string `json:"change"` // number of the last price change in the file
}

// priceWriter writes prices in a format. Close completes the output, but does not close the file.
type priceWriter interface {
	write(p *view.PublishedPrice) error
	Close() error
}

func (c *exportCmd) Run(ctx context.Context, s *session) error {
	format, err := c.format()
	if err != nil {
		return err
	}
	fields, err := view.ParseFields(c.Fields)
	if err != nil {
		return &usageError{text: "--fields " + err.Error()}
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	response, err := api.open(ctx, request{
		path: "/api/prices/snapshot.ndjson", query: filter("appId", unlessZero(c.AppID), "fields", c.Fields, "currency", c.Currency), as: config.RoleMarket,
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	done := exported{File: c.File, Change: response.Header.Get("Assay-Change")}
	if c.File == "-" {
		_, err = writePrices(s.Stdout, response.Body, format, fields, done.Change)
		return api.interrupted(ctx, err)
	}
	file, err := diskfile.Create(c.File + ".*.tmp")
	if err != nil {
		return c.unwritable(err)
	}
	defer file.Discard()
	if done.Items, err = writePrices(file, response.Body, format, fields, done.Change); err != nil {
		return api.interrupted(ctx, err)
	}
	if err := file.Commit(c.File); err != nil {
		return err
	}
	in := ""
	if c.Currency != "" {
		in = " in " + c.Currency
	}
	return s.out.result(done, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s has %s prices%s, up to change %s\n", printable(c.File), count(done.Items), in, done.Change)
	})
}

// unwritable describes why the file cannot be created. It names the file itself: the error names a
// temporary file beside it.
func (c *exportCmd) unwritable(err error) error {
	reason, _ := errors.AsType[*fs.PathError](err)
	dir := printable(filepath.Dir(c.File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &usageError{text: fmt.Sprintf("%s cannot be written: the directory %s does not exist: create it, or use another path", printable(c.File), dir)}
	case reason != nil:
		return &usageError{text: fmt.Sprintf("%s cannot be written: %s: make the directory %s writable, or use another path", printable(c.File), reason.Err, dir)}
	}
	return err
}

// format returns the format of the file.
func (c *exportCmd) format() (string, error) {
	if c.Format != "" {
		return c.Format, nil
	}
	extension := strings.TrimPrefix(filepath.Ext(c.File), ".")
	if slices.Contains([]string{"parquet", "csv", "ndjson"}, extension) {
		return extension, nil
	}
	return "", &usageError{text: fmt.Sprintf("the format of %s is unknown: end its name with .parquet, .csv or .ndjson, or set --format", printable(c.File))}
}

// writePrices copies prices from lines of JSON to a file.
func writePrices(to io.Writer, from io.Reader, format string, fields view.Fields, change string) (items int64, err error) {
	buffer := bufio.NewWriterSize(to, 1<<16)
	var out priceWriter
	switch format {
	case "parquet":
		out = newParquetWriter(buffer, change)
	case "csv":
		if out, err = newCSVWriter(buffer, fields); err != nil {
			return 0, err
		}
	default:
		out = &ndjsonWriter{buffer}
	}
	lines := jsontext.NewDecoder(from)
	for lines.PeekKind() != 0 {
		var p view.PublishedPrice
		if err := json.UnmarshalDecode(lines, &p); err != nil {
			return items, err
		}
		if err := out.write(&p); err != nil {
			return items, err
		}
		items++
	}
	if _, err := lines.ReadToken(); err != io.EOF {
		return items, err
	}
	if err := out.Close(); err != nil {
		return items, err
	}
	return items, buffer.Flush()
}

// open sends r and returns a successful response. The caller must close its body.
func (c *client) open(ctx context.Context, r request) (*http.Response, error) {
	if missing := c.credentials[r.as].missing; missing != nil {
		return nil, missing
	}
	req, err := c.build(ctx, r)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(req)
	if err != nil {
		return nil, c.unanswered(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, c.unanswered(ctx, err)
	}
	return nil, c.problem(response, body, c.credentials[r.as])
}

// interrupted returns an unreachableError if the response ended too early. It returns other errors
// unchanged.
func (c *client) interrupted(ctx context.Context, err error) error {
	var syntax *jsontext.SyntacticError
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &syntax) {
		return c.unanswered(ctx, errors.New("the export ended before it was complete: run the command again"))
	}
	return err
}
