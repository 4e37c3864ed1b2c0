package user_test

import (
	"strings"
	"testing"

	"assay/internal/fault"
	"assay/internal/user"
)

func TestCheck_RefusesInvalidIDs(t *testing.T) {
	for id, want := range map[string][2]string{ // expected codes of Check and CheckAny
		"u1":                       {},
		"House:fee":                {},
		"a/b c\n":                  {},
		"日本":                       {},
		strings.Repeat("u", 128):   {},
		"":                         {"invalid_user_id", "invalid_user_id"},
		strings.Repeat("u", 129):   {"invalid_user_id", "invalid_user_id"},
		"u\x00":                    {"invalid_user_id", "invalid_user_id"},
		"\xff":                     {"invalid_user_id", "invalid_user_id"},
		"house:\x00":               {"invalid_user_id", "invalid_user_id"},
		"house:":                   {"reserved_user", ""},
		"house:fee":                {"reserved_user", ""},
		"house:anything:that is 9": {"reserved_user", ""},
	} {
		for i, check := range []func(string) error{user.Check, user.CheckAny} {
			code := ""
			if f := fault.Of(check(id)); f != nil {
				code = f.Code
			}
			if code != want[i] {
				t.Errorf("%q, check %d: got code %q, want %q", id, i, code, want[i])
			}
		}
	}
}
