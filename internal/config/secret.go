package config

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is printed in place of a secret.
const redacted = "[redacted]"

// Secret is a confidential text. It is redacted when it is printed, logged or encoded, even
// inside other values. Only Reveal returns the text. The zero Secret is empty.
type Secret struct {
	// A pointer prevents fmt from printing the text of a Secret in an unexported field,
	// because fmt does not call methods there.
	text *string
}

// NewSecret returns a Secret with the given text. It returns the zero Secret for an empty
// text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text. Callers may send or compare it, but must not print it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether s is the zero Secret.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns "[redacted]", or an empty string for the zero Secret.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// GoString returns the same text as String.
func (s Secret) GoString() string { return s.String() }

// Format prints the same text as String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText encodes the same text as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON encodes the same text as String.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue returns the same text as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
