package wallet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/user"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 1000, time.UTC)

func testMarks() []Mark {
	var marks []Mark
	for _, user := range []string{"", "A|B", "u\n1", "u1", "ü日"} {
		for _, currency := range []money.Currency{"EUR", "USD"} {
			marks = append(marks, Mark{Account{user, currency}, int64(len(marks) + 1), filled(byte(len(marks)))})
		}
	}
	return marks
}

// newestRules is the mark of the fee rules in test checkpoints.
var newestRules = RulesMark(3, filled(9))

func writeTestCheckpoint(tb testing.TB, keys *Ring, marks []Mark) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := NewCheckpointWriter(&out, keys, noon, newestRules)
	for _, m := range marks {
		if err := w.Add(m); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func readTestCheckpoint(text []byte, keys *Ring) (marks []Mark, at time.Time, err error) {
	at, err = ReadCheckpoint(bytes.NewReader(text), keys, func(m Mark) error {
		marks = append(marks, m)
		return nil
	})
	return marks, at, err
}

func TestCheckpoint_RoundTrip(t *testing.T) {
	for _, marks := range [][]Mark{nil, testMarks()} {
		got, at, err := readTestCheckpoint(writeTestCheckpoint(t, newTestRing(t, "old"), marks), newTestRing(t, "new", "old"))
		if err != nil || !at.Equal(noon) || !slices.Equal(got, append([]Mark{newestRules}, marks...)) {
			t.Errorf("got %v of %s, %v; want %v", got, at, err, marks)
		}
	}
}

func TestCheckpoint_RejectsEveryChangedByte(t *testing.T) {
	keys := newTestRing(t, "k1")
	text := writeTestCheckpoint(t, keys, testMarks())
	for i := range text {
		changed := slices.Clone(text)
		changed[i] ^= 1
		if _, _, err := readTestCheckpoint(changed, keys); !errors.Is(err, ErrCheckpoint) && !errors.Is(err, ErrNoKey) {
			t.Errorf("byte %d changed: got %v, want ErrCheckpoint or ErrNoKey", i, err)
		}
		if _, _, err := readTestCheckpoint(text[:i], keys); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("truncated at %d: got %v, want ErrCheckpoint", i, err)
		}
	}
	if _, _, err := readTestCheckpoint(append(text, '\n'), keys); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("with trailing data: got %v, want ErrCheckpoint", err)
	}
	if _, _, err := readTestCheckpoint(text, newTestRing(t, "k2")); !errors.Is(err, ErrNoKey) {
		t.Errorf("without the key: got %v, want ErrNoKey", err)
	}
}

func TestCheckpointWriter_RejectsAccountsOutOfOrder(t *testing.T) {
	w := NewCheckpointWriter(&bytes.Buffer{}, newTestRing(t, "k1"), noon, newestRules)
	for i, m := range []Mark{{Account: Account{"b", "EUR"}}, {Account: Account{"b", "EUR"}}, {Account: Account{"a", "USD"}}} {
		if err := w.Add(m); (err == nil) != (i == 0) {
			t.Errorf("Add of account %d: got error %v, want one for all but the first", i, err)
		}
	}
}

func largestUserCheckpoint() UserCheckpoint {
	c := UserCheckpoint{User: strings.Repeat("u", user.MaxID), At: noon}
	for i := range MaxCurrencies {
		account := Account{c.User, money.Currency(fmt.Sprintf("A%02d", i))}
		c.Marks = append(c.Marks, Mark{account, 1<<63 - 1, filled(byte(i))})
	}
	return c
}

func TestUserCheckpoint_FitsIn2KiB(t *testing.T) {
	keys := newTestRing(t, strings.Repeat("k", 32))
	c := largestUserCheckpoint()
	text, err := c.Encode(keys)
	if err != nil || len(text) > MaxUserCheckpoint {
		t.Fatalf("Encode: got %d characters, error %v, want at most 2 KiB", len(text), err)
	}
	got, err := DecodeUserCheckpoint(text, keys)
	if err != nil || got.User != c.User || !got.At.Equal(c.At) || !slices.Equal(got.Marks, c.Marks) {
		t.Errorf("decoded: got %+v, error %v, want the encoded checkpoint", got, err)
	}
}

func TestUserCheckpoint_RejectsEveryChangedCharacter(t *testing.T) {
	keys := newTestRing(t, "k1")
	c := UserCheckpoint{User: "u1", At: noon, Marks: []Mark{{Account{"u1", "USD"}, 812, filled(7)}}}
	text, err := c.Encode(keys)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for _, other := range []string{"A", "b", "-", "=", " ", ""} {
			changed := text[:i] + other + text[i+1:]
			if _, err := DecodeUserCheckpoint(changed, keys); changed != text && !errors.Is(err, ErrCheckpoint) && !errors.Is(err, ErrNoKey) {
				t.Errorf("character %d replaced by %q: got error %v, want ErrCheckpoint or ErrNoKey", i, other, err)
			}
		}
	}
}

func FuzzDecodeUserCheckpoint(f *testing.F) {
	keys := newTestRing(f, "k1")
	c := largestUserCheckpoint()
	text, err := c.Encode(keys)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := DecodeUserCheckpoint(text, keys)
		if err != nil {
			return
		}
		if again, err := c.Encode(keys); err != nil || again != text {
			t.Errorf("%q was decoded and encoded to %q, error %v, want the same text", text, again, err)
		}
	})
}

func FuzzReadCheckpoint(f *testing.F) {
	keys := newTestRing(f, "k1")
	var out bytes.Buffer
	w := NewCheckpointWriter(&out, keys, noon, newestRules)
	if err := errors.Join(w.Add(testMarks()[3]), w.Finish()); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := ReadCheckpoint(bytes.NewReader(text), keys, func(Mark) error { return nil }); err == nil && !bytes.Equal(text, out.Bytes()) {
			t.Errorf("ReadCheckpoint(%q): got no error for a changed checkpoint, want one", text)
		}
	})
}
