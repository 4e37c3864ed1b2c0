package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
)

const password = "correct horse battery"

// code returns the code of a fault, or an empty string.
func code(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code
	}
	return ""
}

func TestService_ChecksPasswords(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		s := &Service{DB: f.DB}
		check := func(name, secret string) string {
			o, ok, err := s.Check(f.Context(), name, secret)
			f.Must(err)
			if !ok {
				return ""
			}
			return o.Name + " " + o.Role.String()
		}
		f.Must(s.Add(f.Context(), "anna", Admin, password))
		f.Is("operator of the password", check("anna", password), "anna admin")
		f.Is("operator of a wrong password", check("anna", password+"x"), "")
		f.Is("operator of an empty password", check("anna", ""), "")
		f.Is("operator of a long password", check("anna", strings.Repeat("x", 300)), "")
		f.Is("operator of an unknown name", check("ben", password), "")
		f.Is("error for a used name", code(s.Add(f.Context(), "anna", Read, password)), "operator_exists")
		f.Is("error for a bad name", code(s.Add(f.Context(), "An na", Read, password)), "invalid_body")
		f.Is("error for a short password", code(s.Add(f.Context(), "ben", Read, "short")), "invalid_body")
		f.Is("error for an unknown operator", code(s.SetPassword(f.Context(), "ben", password)), "operator_not_found")

		f.Must(s.SetPassword(f.Context(), "anna", "another horse battery"))
		f.Is("operator of the old password", check("anna", password), "")
		f.Is("operator of the new password", check("anna", "another horse battery"), "anna admin")
		f.Must(s.SetDisabled(f.Context(), "anna", true))
		f.Is("disabled operator", check("anna", "another horse battery"), "")
		f.Must(s.SetDisabled(f.Context(), "anna", false))
		f.Is("enabled operator", check("anna", "another horse battery"), "anna admin")

		changed, err := s.ChangePassword(f.Context(), "anna", password, password)
		f.Must(err)
		f.Is("change with a wrong password", changed, false)
		changed, err = s.ChangePassword(f.Context(), "anna", "another horse battery", password)
		f.Must(err)
		f.Is("change with the current password", changed, true)
		f.Is("operator of the changed password", check("anna", password), "anna admin")
		f.Must(s.Open(f.Context(), "of anna", Session{Role: Admin, Operator: "anna"}))
		f.Must(s.SetRole(f.Context(), "anna", Read))
		f.Is("operator of the new role", check("anna", password), "anna read")
		_, found, err := s.Session(f.Context(), "of anna")
		f.Must(err)
		f.Is("session of the old role", found, false)
		f.Is("error for the role of an unknown operator", code(s.SetRole(f.Context(), "ben", Read)), "operator_not_found")

		var stored string
		f.Must(f.DB.Read.QueryRowContext(f.Context(), `SELECT password FROM operator_account`).Scan(&stored))
		f.Is("format of the stored password", stored[:31], noPassword[:31])
		f.Is("the stored text contains the password", strings.Contains(stored, "horse"), false)
	})
}

func TestSession_EndsByTimeAndChange(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		s := &Service{DB: f.DB}
		valid := func(token string) bool {
			_, ok, err := s.Session(f.Context(), token)
			f.Must(err)
			return ok
		}
		f.Must(s.Add(f.Context(), "anna", Admin, password))
		f.Must(s.Open(f.Context(), "idle", Session{Role: Read}))
		f.Must(s.Open(f.Context(), "read", Session{Role: Read}))
		f.Must(s.Open(f.Context(), "admin", Session{Role: Admin, Operator: "anna"}))
		f.Is("unknown session", valid("other"), false)
		f.Is("the stored id is valid as a token", valid(SessionID("read")), false)
		for age := time.Duration(0); age < AdminTimeout+time.Hour; age += IdleTimeout - time.Minute {
			f.Is(fmt.Sprintf("used reader after %v", age), valid("read"), true)
			f.Is(fmt.Sprintf("used admin after %v", age), valid("admin"), age < AdminTimeout)
			f.Now = f.Now.Add(IdleTimeout - time.Minute)
		}
		f.Is("idle session", valid("idle"), false)
		f.Must(f.DB.InTx(f.Context(), func(t *db.Tx) error {
			_, err := t.Exec(`UPDATE web_session SET created_at = $1 WHERE role = 'read'`, db.Micros(f.Now.Add(-ReadTimeout)))
			return err
		}))
		f.Is("reader after the maximum age", valid("read"), false)

		f.Must(s.Open(f.Context(), "of anna", Session{Role: Admin, Operator: "anna"}))
		f.Must(s.Open(f.Context(), "of ben", Session{Role: Admin, Operator: "ben"}))
		var rows int
		f.Must(f.DB.Read.QueryRowContext(f.Context(), `SELECT count(*) FROM web_session`).Scan(&rows))
		f.Is("rows after the next sign-in", rows, 2)
		f.Must(s.SetPassword(f.Context(), "anna", "another horse battery"))
		f.Is("session after a new password", valid("of anna"), false)
		f.Is("session of another operator", valid("of ben"), true)
		f.Must(s.Close(f.Context(), SessionID("of ben")))
		f.Is("closed session", valid("of ben"), false)
	})
}

func TestOpen_ReplacesLeastRecentlyUsedOfTheRole(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		s := &Service{DB: f.DB}
		f.Must(s.Open(f.Context(), "admin", Session{Role: Admin}))
		for i := range MaxSessions {
			f.Now = f.Now.Add(time.Second)
			f.Must(s.Open(f.Context(), fmt.Sprint(i), Session{Role: Read}))
		}
		f.Now = f.Now.Add(2 * time.Minute)
		_, _, err := s.Session(f.Context(), "0") // now the most recently used
		f.Must(err)
		f.Must(s.Open(f.Context(), "last", Session{Role: Read}))
		for token, want := range map[string]bool{"0": true, "1": false, "2": true, "last": true, "admin": true} {
			_, ok, err := s.Session(f.Context(), token)
			f.Must(err)
			f.Is("session "+token, ok, want)
		}
	})
}
