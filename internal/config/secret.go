package config

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted stands for every secret that is printed.
const redacted = "[redacted]"

// Secret is a text that must not be seen. However it is printed, logged or
// encoded, within other values too, it shows as redacted; only Reveal returns
// it. The zero Secret is no secret.
type Secret struct {
	// The indirection keeps fmt from showing the text of a Secret in an
	// unexported field, where it calls no method.
	text *string
}

// NewSecret wraps a text. The empty text makes the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text itself, to be sent or compared and never to be shown.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns "[redacted]", or nothing for the zero Secret.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// GoString returns what String returns.
func (s Secret) GoString() string { return s.String() }

// Format prints what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText encodes what String returns.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON encodes what String returns.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue logs what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
