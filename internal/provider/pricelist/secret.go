package pricelist

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// template is a text that may name secrets as ${NAME}. Secrets are resolved at
// each request, so that they can change while the program runs.
type template string

var errTemplate = errors.New("a secret is written ${NAME}, in upper-case letters, digits and _")

// errUnset is what a secret is where there are none.
var errUnset = errors.New("is not set")

// names returns the secrets that the text names.
func (t template) names() ([]string, error) {
	var names []string
	_, err := t.expand(func(name string) (string, error) {
		names = append(names, name)
		return "x", nil
	})
	return names, err
}

// expand puts the secrets in.
func (t template) expand(secret func(string) (string, error)) (string, error) {
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
		value, err := secret(name)
		if err != nil {
			return "", fmt.Errorf("secret %s %w", name, err)
		}
		b.WriteString(value)
		rest = tail
	}
}

// expandURL puts the secrets into a URL, escaped as their place there demands.
func (t template) expandURL(secret func(string) (string, error)) (string, error) {
	escaped := func(escape func(string) string) func(string) (string, error) {
		return func(name string) (string, error) {
			value, err := secret(name)
			return escape(value), err
		}
	}
	path, query, found := strings.Cut(string(t), "?")
	whole, err := template(path).expand(escaped(url.PathEscape))
	if err != nil || !found {
		return whole, err
	}
	rest, err := template(query).expand(escaped(url.QueryEscape))
	return whole + "?" + rest, err
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
