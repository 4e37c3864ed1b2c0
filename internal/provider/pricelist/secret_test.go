package pricelist

import "testing"

func TestTemplate_EscapesSecretsInURLs(t *testing.T) {
	secret := func(string) (string, error) { return "a+b/c&d=e?f#g h", nil }
	for in, want := range map[string]string{
		"https://h/list.json":            "https://h/list.json",
		"https://h/list.json?key=${KEY}": "https://h/list.json?key=a%2Bb%2Fc%26d%3De%3Ff%23g+h",
		"https://h/${KEY}/x?a=1&b=${K}":  "https://h/a+b%2Fc&d=e%3Ff%23g%20h/x?a=1&b=a%2Bb%2Fc%26d%3De%3Ff%23g+h",
	} {
		if got, err := template(in).expandURL(secret); got != want || err != nil {
			t.Errorf("expandURL(%s) = %q, %v, want %q", in, got, err, want)
		}
	}
}
