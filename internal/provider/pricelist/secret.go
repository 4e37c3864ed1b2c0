package pricelist

import (
	"errors"
	"fmt"
	"strings"
)

// template is a text that may name secrets as ${NAME}. Secrets are resolved at
// each request, so that they can change while the program runs.
type template string

var errTemplate = errors.New("a secret is written ${NAME}, in upper-case letters, digits and _")

// names returns the secrets that the text names.
func (t template) names() ([]string, error) {
	var names []string
	_, err := t.expand(func(name string) (string, bool) {
		names = append(names, name)
		return "x", true
	})
	return names, err
}

// expand puts the secrets in.
func (t template) expand(secret func(string) (string, bool)) (string, error) {
	var b strings.Builder
	rest := string(t)
	for {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || !secretName(name) {
			return "", errTemplate
		}
		value, ok := secret(name)
		if !ok {
			return "", fmt.Errorf("secret %s is not set", name)
		}
		b.WriteString(value)
		rest = tail
	}
}

func secretName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return name != ""
}
