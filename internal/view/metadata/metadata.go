// Package metadata reads descriptions of items from a file of the operator: type, rarity,
// wear, collection and the address of an image. The content is kept in memory and does not
// change. If one item is invalid, the whole file is rejected.
package metadata

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/diskfile"
	"assay/internal/fault"
	"assay/internal/strictjson"
)

// Limits of a file.
const (
	maxItems = 200_000
	maxItem  = 64 << 10 // bytes of one item
	maxText  = 128
	maxURL   = 1024
)

// Description describes an item. An empty field is unknown.
type Description struct {
	Type       string `json:"type,omitempty"`
	Rarity     string `json:"rarity,omitempty"`
	Wear       string `json:"wear,omitempty"`
	Collection string `json:"collection,omitempty"`
	ImageURL   string `json:"imageUrl,omitempty"`
}

// Items maps the keys of items to their descriptions. A nil Items is empty.
type Items map[catalog.Key]*Description

// Of returns the description of an item, or nil. If the phase has no description, Of returns the
// description of the name without a phase.
func (i Items) Of(key catalog.Key) *Description {
	if item := i[key]; item != nil || key.Phase == "" {
		return item
	}
	key.Phase = ""
	return i[key]
}

// Load reads a file: a JSON array of objects, or one object after another (NDJSON). If path is
// empty, it returns nil. An error contains the line of the invalid item.
func Load(path string) (Items, error) {
	if path == "" {
		return nil, nil
	}
	f, err := diskfile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the file was only read
	r := newReader(f)
	if err := r.read(); err != nil {
		line, lineErr := lineAt(f, r.start)
		return nil, errors.Join(fmt.Errorf("line %d: %w", line, err), lineErr)
	}
	return r.items, nil
}

// reader reads the items of a file.
type reader struct {
	dec   *jsontext.Decoder
	start int64 // offset of the current item
	items Items
	known map[string]string // equal texts share memory
}

func newReader(from io.Reader) *reader {
	in := &bounded{from: from}
	in.dec = jsontext.NewDecoder(in)
	return &reader{dec: in.dec, items: Items{}, known: map[string]string{}}
}

// bounded limits the size of an item. The decoder reads more data only to complete the
// current value.
type bounded struct {
	from io.Reader
	dec  *jsontext.Decoder
	read int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.read-b.dec.InputOffset() > maxItem {
		return 0, fmt.Errorf("the item is longer than %d KiB", maxItem>>10)
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	return n, err
}

func (r *reader) read() error {
	inArray := r.dec.PeekKind() == '['
	if inArray {
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
	}
	for {
		r.start = r.dec.InputOffset()
		if inArray && r.dec.PeekKind() == ']' {
			return r.end()
		}
		value, err := r.dec.ReadValue()
		if errors.Is(err, io.EOF) && !inArray {
			return nil
		}
		if err != nil {
			return plain(err)
		}
		r.start = r.dec.InputOffset() - int64(len(value))
		if err := r.add(value); err != nil {
			return err
		}
	}
}

// end reads the end of an array and of the file.
func (r *reader) end() error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("there is more data after the array")
	}
	return nil
}

// plain returns the reason of a syntax error without offsets, because Load adds the line.
func plain(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax) && syntax.Err != nil:
		return fmt.Errorf("the JSON is malformed: %w", syntax.Err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the file ends within a JSON value")
	}
	return err
}

// add decodes an item and adds it.
func (r *reader) add(value []byte) error {
	key, item := catalog.Key{AppID: catalog.CS2}, &Description{}
	in := strictjson.NewReader(bytes.NewReader(value))
	texts := map[string]*string{"type": &item.Type, "rarity": &item.Rarity, "wear": &item.Wear, "collection": &item.Collection}
	hasName := false
	in.Object([]string{"appId", "marketHashName", "phase", "type", "rarity", "wear", "collection", "imageUrl"}, func(member string) bool {
		switch field := texts[member]; {
		case field != nil && in.Null():
		case field != nil:
			text, _ := in.Text(0, maxText)
			*field = r.shared(text)
		case member == "appId":
			app, _ := in.Int(1, math.MaxInt32)
			key.AppID = int32(app)
		case member == "marketHashName":
			hasName = true
			key.Name, _ = in.Text(1, catalog.MaxName)
		case member == "phase":
			key.Phase, _ = in.Text(0, catalog.MaxName)
			if err := catalog.CheckPhase(key.Phase); err != nil {
				in.Fault("%v", err)
			}
		case member == "imageUrl" && in.Null():
		case member == "imageUrl":
			item.ImageURL, _ = in.Text(0, maxURL)
			if item.ImageURL != "" && !isAddress(item.ImageURL) {
				in.Fault("must be an address that begins with https:// or http://")
			}
		default:
			return false
		}
		return true
	})
	in.Require("", "marketHashName", hasName)
	if err := in.Finish(); err != nil {
		return first(err)
	}
	switch _, twice := r.items[key]; {
	case twice:
		return fmt.Errorf("the item %q occurs twice", key.Name)
	case len(r.items) == maxItems:
		return fmt.Errorf("there are more than %d items", maxItems)
	}
	r.items[key] = item
	return nil
}

func (r *reader) shared(text string) string {
	if known, ok := r.known[text]; ok {
		return known
	}
	text = strings.Clone(text)
	r.known[text] = text
	return text
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// first returns the first fault of an item, such as "rarity: must be a string".
func first(err error) error {
	f := fault.Of(err)
	if f == nil || len(f.Fields) == 0 {
		return err
	}
	field := f.Fields[0]
	if name := strings.TrimPrefix(field.Pointer, "/"); name != "" {
		return fmt.Errorf("%s: %s", name, field.Detail)
	}
	return errors.New("the item " + field.Detail)
}

// lineAt returns the line number of the first item at or after an offset.
func lineAt(f *os.File, offset int64) (int, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	in := bufio.NewReader(f)
	line := 1
	for at := int64(0); ; at++ {
		c, err := in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return line, nil
		case err != nil:
			return line, err
		case at >= offset && !strings.ContainsRune(" \t\r\n,", rune(c)):
			return line, nil
		case c == '\n':
			line++
		}
	}
}
