package cli

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"
)

func TestOutput_JSONContainsNoControlCharacters(t *testing.T) {
	const name = "a\x1b[2J\x7f\u009b31m\u202egnp.exe\u2066\u2028\u2029\ufeff\U000e0001★ <é>\n"
	var out bytes.Buffer
	if err := (output{w: &out, json: true}).object(map[string]string{name: name}); err != nil {
		t.Fatal(err)
	}
	line := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	for _, r := range string(line) {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("got the control character %U in the output, want it escaped", r)
		}
	}
	var back map[string]string
	if err := json.Unmarshal(line, &back); err != nil || back[name] != name {
		t.Errorf("line %s: got %q, error %v, want the original name", line, back, err)
	}
}
