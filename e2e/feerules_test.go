package e2e

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"assay/internal/wallet/fee"
	"assay/internal/wallet/fee/feetest"
)

// storedFees selects all stored versions.
const storedFees = `SELECT version, digest, rules, source, mark, activated_at, activated_by FROM fee_rule_set ORDER BY version`

// feeSource is a server with a source of fee rules, and its first version.
type feeSource struct {
	*server
	db     *sql.DB
	stored []string
	active feeRules
}

// newFeeSource starts a server with a source of fee rules.
func newFeeSource(t *testing.T, on engine, source string) *feeSource {
	t.Helper()
	s := &feeSource{server: on.newServer(t, "PAYMENT_FEE_RULES="+source)}
	s.start()
	s.db = s.open()
	s.stored, s.active = rows(t, s.db, storedFees), s.feeRules()
	if s.active.Version != 1 || s.active.Source != source {
		t.Fatalf("first version: got %d from %s, want 1 from the source", s.active.Version, s.active.Source)
	}
	return s
}

// refused refreshes the fee rules, with and without a dry run. The response must list the given
// errors, and no rule may change.
func (s *feeSource) refused(what string, status int, code string, faults ...string) {
	s.t.Helper()
	for _, how := range []string{"", "?dryRun=1", "?allowLargeChange=1"} {
		got, response := s.postFees("/refresh"+how, "")
		var found []string
		list, _ := response["errors"].([]any)
		for _, f := range list {
			f, _ := f.(map[string]any)
			found = append(found, fmt.Sprint(f["pointer"], " ", f["code"]))
		}
		slices.Sort(found)
		if got != status || response["code"] != code || !slices.Equal(found, faults) {
			s.t.Errorf("%s%s: got %d %v, want %d %s %q", what, how, got, response, status, code, faults)
		}
	}
	if now := rows(s.t, s.db, storedFees); !slices.Equal(now, s.stored) {
		s.t.Errorf("%s: stored rules: got %q, want %q", what, now, s.stored)
	}
	if now := s.feeRules(); now.Version != s.active.Version || now.Rules.Fallback != s.active.Rules.Fallback || len(now.Rules.Rules) != len(s.active.Rules.Rules) {
		s.t.Errorf("%s: active rules: got %+v, want %+v", what, now, s.active)
	}
}

func TestFees_InvalidRulesListAllErrors(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		path, write := feeFile(t, feeDocument(100))
		s := newFeeSource(t, on, path)
		documents := feetest.Broken()
		for name, d := range documents {
			write(d.Text)
			s.refused(name, http.StatusUnprocessableEntity, "invalid_fee_rules", d.Faults...)
		}
		t.Logf("tested %d kinds of documents", len(documents))
		write(strings.Repeat(" ", fee.MaxBytes) + feetest.OneRule(`"basisPoints":1`))
		s.refused("too large", http.StatusUnprocessableEntity, "invalid_fee_rules", " too_large")
		write(feeDocument(101))
		if status, response := s.postFees("/refresh", ""); status != http.StatusOK || fmt.Sprint(response["version"]) != "2" {
			t.Errorf("valid rules: got %d %v, want 200 and version 2", status, response)
		}
	})
}

func TestFees_DatabaseRejectsChanges(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		path, _ := feeFile(t, feeDocument(100))
		s := newFeeSource(t, on, path)
		edits := []string{`UPDATE fee_rule_set SET source = 'x'`, `DELETE FROM fee_rule_set`, `TRUNCATE fee_rule_set`}
		if on == onSQLite {
			edits[2] = `REPLACE INTO fee_rule_set SELECT * FROM fee_rule_set`
		}
		for _, edit := range edits {
			if _, err := s.db.ExecContext(t.Context(), edit); err == nil || !strings.Contains(err.Error(), "never") {
				t.Errorf("%s: got error %v, want one that protects the stored rules", edit, err)
			}
		}
		if now := rows(t, s.db, storedFees); !slices.Equal(now, s.stored) {
			t.Errorf("stored rules: got %q, want %q", now, s.stored)
		}
	})
}

func TestFees_UnreadableFileChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		dir := t.TempDir()
		path, good := filepath.Join(dir, "fees.json"), filepath.Join(dir, "good.json")
		pipe, locked := filepath.Join(dir, "pipe"), filepath.Join(dir, "locked")
		if err := errors.Join(
			os.WriteFile(good, []byte(feeDocument(100)), 0o600),
			os.WriteFile(locked, []byte(feeDocument(200)), 0),
			syscall.Mkfifo(pipe, 0o600),
		); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			locked = "/proc/self/mem" // even root cannot read the start of this file
		}
		lead := func(to string) {
			t.Helper()
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		}
		lead(good)
		s := newFeeSource(t, on, path)
		for name, to := range map[string]string{
			"missing": filepath.Join(dir, "none"), "a directory": dir, "a pipe": pipe, "a device": "/dev/zero",
			"below a file": filepath.Join(good, "x"), "a link to itself": path, "unreadable": locked,
		} {
			lead(to)
			s.refused(name, http.StatusBadGateway, "fee_rules_unreachable")
		}
		if _, response := s.postFees("/refresh", ""); strings.Contains(fmt.Sprint(response), dir) {
			t.Errorf("the response contains the path of the file: %v", response)
		}
		lead(good)
		if status, response := s.postFees("/refresh", ""); status != http.StatusOK || response["changed"] != false {
			t.Errorf("readable file: got %d %v, want 200 without a change", status, response)
		}
	})
}

func TestFees_FailingAddressChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = io.WriteString(z, feeDocument(200))
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		text := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"a"`)
			_, _ = io.WriteString(w, feeDocument(100))
		}
		status := func(code int) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		}
		elsewhere := httptest.NewServer(http.HandlerFunc(text))
		t.Cleanup(elsewhere.Close)
		var mu sync.Mutex
		serve := http.HandlerFunc(text)
		become := func(h http.HandlerFunc) { mu.Lock(); defer mu.Unlock(); serve = h }
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			h := serve
			mu.Unlock()
			h(w, r)
		}))
		t.Cleanup(at.Close)
		s := newFeeSource(t, on, at.URL)
		for name, h := range map[string]http.HandlerFunc{
			"204": status(204), "206": status(206), "300": status(300), "401": status(401), "403": status(403), "404": status(404), "410": status(410),
			"500": status(500), "502": status(502), "503": status(503),
			"a redirect to another host": http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP,
			"a redirect to itself":       http.RedirectHandler("/", http.StatusFound).ServeHTTP,
			"a redirect without target":  status(302),
			"304 always":                 status(304),
			"304 of another tag":         func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"b"`); w.WriteHeader(304) },
			"truncated gzip": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(packed.Bytes()[:packed.Len()/2])
			},
			"gzip header only": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Encoding", "gzip"); text(w, r) },
			"unknown encoding": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Encoding", "x-own"); text(w, r) },
			"a body that is cut": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "99999")
				text(w, r)
			},
			"no response": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		} {
			become(h)
			s.refused(name, http.StatusBadGateway, "fee_rules_unreachable")
		}
		become(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
		s.refused("a page", http.StatusUnprocessableEntity, "invalid_fee_rules", " malformed")
		become(status(200))
		s.refused("nothing", http.StatusUnprocessableEntity, "invalid_fee_rules", " malformed")
		become(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
		})
		if code, response := s.postFees("/refresh?allowLargeChange=1", ""); code != http.StatusOK || fmt.Sprint(response["version"]) != "2" {
			t.Errorf("working address: got %d %v, want 200 and version 2", code, response)
		}
		at.Close()
		s.stored, s.active = rows(t, s.db, storedFees), s.feeRules()
		s.refused("no server", http.StatusBadGateway, "fee_rules_unreachable")
	})
}
