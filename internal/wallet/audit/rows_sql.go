package audit

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// cell is the value of a column.
type cell struct {
	kind kind
	n    int64
	text string
	blob []byte // valid until the next row, also for the bytes of a text
}

type kind int

const (
	other kind = iota // NULL, or a type that the ledger does not use
	whole
	text
	rawText // a text with its bytes in blob
	blob
)

// rowReader reads rows into cells. It uses the drivers directly because database/sql
// copies each value once more, and reading takes most of the time of a verification.
type rowReader interface {
	next(into []cell) (bool, error)
	close() error
}

// query starts a query on a connection. The reader owns the connection until it is closed.
func query(ctx context.Context, conn any, text string, args []any) (rowReader, error) {
	if pg, ok := conn.(*stdlib.Conn); ok {
		rows, err := pg.Conn().Query(ctx, text, args...)
		return &pgxRows{rows: rows}, err
	}
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return nil, fmt.Errorf("connections of type %T cannot be read", conn)
	}
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, err
		}
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	rows, err := q.QueryContext(ctx, text, named)
	if err != nil {
		return nil, err
	}
	return &driverRows{rows: rows, row: make([]driver.Value, len(rows.Columns()))}, nil
}

// driverRows reads the rows of any database/sql driver.
type driverRows struct {
	rows driver.Rows
	row  []driver.Value
}

func (r *driverRows) next(into []cell) (bool, error) {
	if err := r.rows.Next(r.row); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return false, err
	}
	for i, v := range r.row {
		into[i] = valueOf(v)
	}
	return true, nil
}

func (r *driverRows) close() error { return r.rows.Close() }

func valueOf(v any) cell {
	switch v := v.(type) {
	case int64:
		return cell{kind: whole, n: v}
	case int32:
		return cell{kind: whole, n: int64(v)}
	case string:
		return cell{kind: text, text: v}
	case []byte:
		return cell{kind: blob, blob: v}
	}
	return cell{}
}

// pgxRows reads the rows of PostgreSQL.
type pgxRows struct{ rows pgx.Rows }

func (r *pgxRows) next(into []cell) (bool, error) {
	if !r.rows.Next() {
		return false, r.rows.Err()
	}
	raw := r.rows.RawValues()
	for i, d := range r.rows.FieldDescriptions() {
		if d.Format != pgtype.BinaryFormatCode {
			return true, r.decode(into)
		}
		into[i] = binaryValue(d.DataTypeOID, raw[i])
	}
	return true, nil
}

// decode handles connections that use the text format, for example through a pooler.
func (r *pgxRows) decode(into []cell) error {
	values, err := r.rows.Values()
	for i, v := range values {
		into[i] = valueOf(v)
	}
	return err
}

func (r *pgxRows) close() error {
	r.rows.Close()
	return r.rows.Err()
}

func binaryValue(oid uint32, raw []byte) cell {
	switch {
	case raw == nil:
		return cell{}
	case oid == pgtype.Int8OID && len(raw) == 8:
		return cell{kind: whole, n: int64(binary.BigEndian.Uint64(raw))}
	case oid == pgtype.Int4OID && len(raw) == 4:
		return cell{kind: whole, n: int64(int32(binary.BigEndian.Uint32(raw)))}
	case oid == pgtype.TextOID:
		return cell{kind: rawText, blob: raw}
	case oid == pgtype.ByteaOID:
		return cell{kind: blob, blob: raw}
	}
	return cell{}
}

// cells are the values of a row. The methods take them in order.
type cells struct {
	names  []string
	values []cell
	texts  []string // last value of each text column
	at     int
	faults []string
}

func newCells(columns string) *cells {
	c := &cells{}
	for name := range strings.SplitSeq(columns, ",") {
		_, name, _ = strings.Cut(strings.TrimSpace(name), ".")
		c.names = append(c.names, name)
	}
	c.values, c.texts = make([]cell, len(c.names)), make([]string, len(c.names))
	return c
}

// take returns the next value. A value of another kind is a fault.
func (c *cells) take(k kind) *cell {
	v := &c.values[c.at]
	if v.kind != k && (v.kind != rawText || k != text) {
		c.faults = append(c.faults, c.names[c.at])
		*v = cell{}
	}
	c.at++
	return v
}

func (c *cells) int() int64 { return c.take(whole).n }

// text returns the next value. It reuses the string of the previous row if it is equal. A
// NUL is a fault because PostgreSQL rejects it.
func (c *cells) text() string {
	v := c.take(text)
	if v.kind != rawText {
		if strings.IndexByte(v.text, 0) >= 0 {
			c.faults = append(c.faults, c.names[c.at-1]+" with a NUL")
		}
		return v.text
	}
	last := &c.texts[c.at-1]
	if *last != string(v.blob) {
		*last = string(v.blob)
	}
	return *last
}

func (c *cells) hash() wallet.Hash {
	b := c.take(blob).blob
	if len(b) != len(wallet.Hash{}) {
		c.faults = append(c.faults, c.names[c.at-1])
	}
	return wallet.StoredHash(b)
}

// ofBytes matches the columns with texts or bytes in a list of columns.
var ofBytes = regexp.MustCompile(`\b[a-z]\.(user_id|currency|type|kind|scope|idempotency_key|note|fee_rule|key_id|context_id|asset_id|payment_method|` +
	`country|state|digest|rules|source|mark|activated_by|hash|posting_hash|terms|previous_hash|head_hash|mac|previous_mac|check_mac)\b`)

// bounded changes a query to return NULL for values longer than the column's maximum. This
// limits the memory per row.
func bounded(query string) string {
	columns, rest, _ := strings.Cut(query, " FROM ")
	return ofBytes.ReplaceAllStringFunc(columns, func(column string) string {
		return fmt.Sprintf("CASE WHEN octet_length(%s) <= %d THEN %s END", column, longest(column[2:]), column)
	}) + " FROM " + rest
}

// longest returns the maximum length of a column in bytes. The service never writes a
// longer value.
func longest(column string) int {
	switch column {
	case "rules":
		return 4 * fee.MaxBytes // in canonical form
	case "source":
		return 8 << 10
	case "note", "scope":
		return wallet.MaxNote
	default:
		return 256
	}
}

// readCells reads all rows of a query. columns are the selected columns.
func readCells[T any](l *Snapshot, columns string, take func(*cells) T, text string, args ...any) (out []T, err error) {
	err = eachCells(l, columns, take, func(row *T) error {
		out = append(out, *row)
		return nil
	}, bounded(text), args...)
	return out, err
}

// eachCells calls use for each row of a query. use must not read from the snapshot.
func eachCells[T any](l *Snapshot, columns string, take func(*cells) T, use func(*T) error, text string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn.Raw(func(conn any) (err error) {
		rows, err := query(l.ctx, conn, text, args)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.close()) }()
		c := newCells(columns)
		for {
			more, err := rows.next(c.values)
			if err != nil || !more {
				return err
			}
			c.at, c.faults = 0, nil
			row := take(c)
			if err := use(&row); err != nil {
				return err
			}
		}
	})
}
