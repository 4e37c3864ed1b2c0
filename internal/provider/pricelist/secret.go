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

// expandURL puts the secrets into a URL, escaped as their place there demands.
func (t template) expandURL(secret func(string) (string, bool)) (string, error) {
	escaped := func(escape func(string) string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			value, ok := secret(name)
			return escape(value), ok
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
