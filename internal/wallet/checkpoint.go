package wallet

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"assay/internal/money"
)

// Mark is a checkpoint's record of an account: the number and hash of its last entry. The
// hash covers all earlier entries of the chain.
type Mark struct {
	Account
	Number int64
	Hash   Hash
}

// RulesMark returns a checkpoint's record of the fee rules: their newest version and its
// MAC. The mark has no Account. It precedes the marks of the accounts.
func RulesMark(version int64, mac Hash) Mark { return Mark{Number: version, Hash: mac} }

// OfRules reports whether the mark is the record of the fee rules.
func (m *Mark) OfRules() bool { return m.Account == Account{} }

// A checkpoint of the whole ledger is a text file. It has a heading of two lines, a line for
// the fee rules, a line for each account that has entries, and three closing lines. The
// accounts are ordered by the bytes of user and currency. The last line is the seal of all
// previous lines.
const (
	checkpointHeading = "assay wallet checkpoint 1"
	checkpointTime    = "2006-01-02T15:04:05.000000Z"
	longestLine       = 1024 // bytes; user ids are quoted
)

// ErrCheckpoint means that a checkpoint is damaged or was not sealed with the ledger's keys.
var ErrCheckpoint = errors.New("the checkpoint is damaged or belongs to another ledger")

// CheckpointWriter writes a checkpoint of the whole ledger.
type CheckpointWriter struct {
	out   *bufio.Writer
	mac   hash.Hash
	keyID string
	last  Account
	count int64
}

// NewCheckpointWriter returns a writer for a checkpoint of the ledger at a time. It writes
// the heading and the mark of the fee rules.
func NewCheckpointWriter(w io.Writer, keys *Ring, at time.Time, rules Mark) *CheckpointWriter {
	c := &CheckpointWriter{keyID: keys.keys[0].ID, mac: hmac.New(sha256.New, keys.keys[0].Bytes)}
	_, _ = io.WriteString(c.mac, checkpointDomain) // never fails
	c.out = bufio.NewWriter(io.MultiWriter(w, c.mac))
	c.printf("%s\nat %s\nrules %d %s\n", checkpointHeading, at.UTC().Format(checkpointTime), rules.Number, rules.Hash)
	return c
}

// printf writes to c.out. The bufio.Writer keeps the first error, and Finish returns it.
func (c *CheckpointWriter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format, args...)
}

// Add writes the mark of an account. It returns an error if the account does not follow the
// previous one in order.
func (c *CheckpointWriter) Add(m Mark) error {
	if c.count > 0 && !before(c.last, m.Account) {
		return fmt.Errorf("checkpoint account %.100q %s is out of order", m.User, m.Currency)
	}
	c.last, c.count = m.Account, c.count+1
	c.printf("%s %s %d %s\n", strconv.QuoteToASCII(m.User), strconv.QuoteToASCII(string(m.Currency)), m.Number, m.Hash)
	return nil
}

// Finish writes the closing lines with the seal. It does not close the underlying writer.
func (c *CheckpointWriter) Finish() error {
	c.printf("end %d\nkey %s\n", c.count, c.keyID)
	if err := c.out.Flush(); err != nil {
		return err
	}
	c.printf("mac %s\n", hex.EncodeToString(c.mac.Sum(nil)))
	return c.out.Flush()
}

// ReadCheckpoint calls use for each mark of a checkpoint and returns the checkpoint's time.
// The mark of the fee rules comes first, then the accounts in order. The caller must discard
// all marks if ReadCheckpoint returns an error: ErrCheckpoint, ErrNoKey, or an error of r or
// use. It reads line by line, so its memory use does not depend on the length of the
// checkpoint.
func ReadCheckpoint(r io.Reader, keys *Ring, use func(Mark) error) (at time.Time, err error) {
	c := &checkpointReader{in: bufio.NewReaderSize(r, longestLine)}
	for _, k := range keys.keys { // compute all MACs: the key id is at the end of the file
		h := hmac.New(sha256.New, k.Bytes)
		_, _ = io.WriteString(h, checkpointDomain) // never fails
		c.macs = append(c.macs, h)
	}
	at, rules, err := c.heading()
	if err != nil {
		return at, err
	}
	if err := use(rules); err != nil {
		return at, err
	}
	if err := c.marks(use); err != nil {
		return at, err
	}
	return at, c.end(keys)
}

type checkpointReader struct {
	in   *bufio.Reader
	macs []hash.Hash // of the lines read so far, one per key
}

// line reads a line and adds it to the MACs. It returns the line without the newline.
func (c *checkpointReader) line() (string, error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return "", ErrCheckpoint
	case err != nil:
		return "", err
	}
	for _, h := range c.macs {
		_, _ = h.Write(line) // never fails
	}
	return string(line[:len(line)-1]), nil
}

func (c *checkpointReader) heading() (at time.Time, rules Mark, err error) {
	line, err := c.line()
	if err != nil {
		return at, rules, err
	}
	if line != checkpointHeading {
		return at, rules, ErrCheckpoint
	}
	if line, err = c.line(); err != nil {
		return at, rules, err
	}
	text, ok := strings.CutPrefix(line, "at ")
	if at, err = time.Parse(checkpointTime, text); err != nil || !ok {
		return at, rules, ErrCheckpoint
	}
	if line, err = c.line(); err != nil {
		return at, rules, err
	}
	text, ok = strings.CutPrefix(line, "rules ")
	if !ok || !rules.parse(text) {
		return at, rules, ErrCheckpoint
	}
	return at, rules, nil
}

// marks reads the lines of the accounts and the line with their number.
func (c *checkpointReader) marks(use func(Mark) error) error {
	var last Account
	for n := int64(0); ; n++ {
		line, err := c.line()
		if err != nil {
			return err
		}
		if count, ended := strings.CutPrefix(line, "end "); ended {
			if count != strconv.FormatInt(n, 10) {
				return ErrCheckpoint
			}
			return nil
		}
		m, ok := parseMark(line)
		if !ok || n > 0 && !before(last, m.Account) {
			return ErrCheckpoint
		}
		if err := use(m); err != nil {
			return err
		}
		last = m.Account
	}
}

// end reads the key id and the seal, and verifies the seal.
func (c *checkpointReader) end(keys *Ring) error {
	line, err := c.line()
	if err != nil {
		return err
	}
	id, ok := strings.CutPrefix(line, "key ")
	if !ok {
		return ErrCheckpoint
	}
	sums := make(map[string]string, len(c.macs))
	for i, k := range keys.keys {
		sums[k.ID] = hex.EncodeToString(c.macs[i].Sum(nil))
	}
	want, ok := sums[id]
	if !ok {
		return fmt.Errorf("%w: %.40q", ErrNoKey, id)
	}
	if line, err = c.line(); err != nil {
		return err
	}
	if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) || !hmac.Equal([]byte(line), []byte("mac "+want)) {
		return ErrCheckpoint
	}
	return nil
}

func parseMark(line string) (m Mark, ok bool) {
	user, rest, err := unquotePrefix(line)
	if err != nil {
		return m, false
	}
	currency, rest, err := unquotePrefix(rest)
	if err != nil {
		return m, false
	}
	m.User, m.Currency = user, money.Currency(currency)
	return m, !m.OfRules() && m.parse(rest)
}

// parse sets the number and hash of the mark from text. It reports whether text is valid.
func (m *Mark) parse(text string) bool {
	number, digits, ok := strings.Cut(text, " ")
	if !ok {
		return false
	}
	var err error
	if m.Number, err = strconv.ParseInt(number, 10, 64); err != nil {
		return false
	}
	n, err := hex.Decode(m.Hash[:], []byte(truncate(digits, 2*len(m.Hash))))
	return err == nil && n == len(m.Hash) && len(digits) == 2*n
}

// unquotePrefix splits a line after its leading quoted string and the following space. It
// returns the string unquoted.
func unquotePrefix(line string) (text, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", "", err
	}
	if text, err = strconv.Unquote(quoted); err != nil {
		return "", "", err
	}
	return text, strings.TrimPrefix(line[len(quoted):], " "), nil
}

func truncate(text string, most int) string { return text[:min(len(text), most)] }

// before reports whether account a precedes account b in a checkpoint.
func before(a, b Account) bool {
	return a.User < b.User || a.User == b.User && a.Currency < b.Currency
}
