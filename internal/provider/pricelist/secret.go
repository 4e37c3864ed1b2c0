package pricelist

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// template is a text with placeholders of the form ${NAME} for secrets. They are resolved
// for each request, so a secret can change without a restart.
type template string

var errTemplate = errors.New("invalid secret: write ${NAME} with upper-case letters, digits and _")

// errUnset is the error for a secret without a value. It completes "secret NAME ...".
var errUnset = errors.New("is not set")

// names returns the names of the secrets in the text.
func (t template) names() ([]string, error) {
	var names []string
	_, err := t.expand(func(name string) (string, error) {
		names = append(names, name)
		return "x", nil
	})
	return names, err
}

// expand replaces the secrets with their values.
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

// expandURL replaces the secrets in a URL with their values. It escapes each value for
// the path or the query.
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
