package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/randtest"
)

const feeRulesPath = "/api/functions/admin/payment-fee-rules"

// feeDocument returns many rules with the same charge, so that a mixture of two versions is
// detected.
func feeDocument(points int) string {
	var rules []string
	for i := range 200 {
		rules = append(rules, fmt.Sprintf(`{"id":"r%d","priority":%d,"conditions":{"paymentMethod":"m%d"},"basisPoints":%d}`, i, i, i, points))
	}
	return fmt.Sprintf(`{"rules":[%s],"fallback":{"basisPoints":%d}}`, strings.Join(rules, ","), points)
}

// feeFile creates a file of fee rules. It returns the path, and a function that replaces the
// content.
func feeFile(t *testing.T, rules string) (path string, write func(rules string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fees.json")
	write = func(rules string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(rules)
	return path, write
}

type feeRules struct {
	Version int64
	Source  string
	Rules   struct {
		Rules    []struct{ BasisPoints int }
		Fallback struct{ BasisPoints int }
	}
}

func (s *server) feeRules() (f feeRules) {
	s.t.Helper()
	s.get(feeRulesPath, &f)
	return f
}

// postFees sends a request. The status is 0 if no server responds.
func (s *server) postFees(path, body string) (status int, response map[string]any) {
	s.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	status, text, err := s.call(http.MethodPost, feeRulesPath+path, in)
	if err != nil {
		return 0, nil
	}
	_ = json.Unmarshal(text, &response)
	return status, response
}

func TestFees_KillDuringRefreshKeepsOneVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		path, writeRules := feeFile(t, feeDocument(1))
		write := func(points int) { t.Helper(); writeRules(feeDocument(points)) }
		r := randtest.New(t)
		s := on.newServer(t, "PAYMENT_FEE_RULES="+path)
		s.start()
		if first := s.feeRules(); first.Version != 1 || first.Source != path || first.Rules.Fallback.BasisPoints != 1 {
			t.Fatalf("after the first start: got version %d from %s, want 1 from the file", first.Version, first.Source)
		}
		write(2)
		begun := time.Now()
		if status, response := s.postFees("/refresh?allowLargeChange=1", ""); status != http.StatusOK {
			t.Fatalf("refresh of the fee rules: got %d %v, want 200", status, response)
		}
		lasts := time.Since(begun)
		before, taken := s.feeRules(), 0
		for kill := range randtest.Count(6, 100) {
			write(kill + 3)
			responded := make(chan int, 1)
			go func() {
				status, _ := s.postFees("/refresh?allowLargeChange=1", "")
				responded <- status
			}()
			time.Sleep(time.Duration(r.Int64N(int64(lasts) * 3 / 2)))
			s.kill()
			status := <-responded
			s.start()
			after := s.feeRules()
			points := after.Rules.Fallback.BasisPoints
			for _, rule := range after.Rules.Rules {
				if rule.BasisPoints != points {
					t.Fatalf("version %d has rules of %d and %d basis points, want the same points in all rules", after.Version, rule.BasisPoints, points)
				}
			}
			old := after.Version == before.Version && points == before.Rules.Fallback.BasisPoints
			isNew := after.Version == before.Version+1 && points == kill+3
			if !old && !isNew || status == http.StatusOK && !isNew {
				t.Fatalf("got version %d with %d points after version %d with %d, status %d; want the old or the new rules", after.Version, points, before.Version, before.Rules.Fallback.BasisPoints, status)
			}
			if isNew {
				taken++
			}
			before = after
		}
		t.Logf("%d refreshes had succeeded before the kill", taken)
	})
}

func TestFees_RefreshByAddress(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		var document atomic.Value
		document.Store(feeDocument(1000))
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, document.Load().(string))
		}))
		s := on.newServer(t, "PAYMENT_FEE_RULES="+at.URL)
		s.start()
		expect := func(what, path, body string, status int, member string, want any) {
			t.Helper()
			got, response := s.postFees(path, body)
			if got != status || fmt.Sprint(response[member]) != fmt.Sprint(want) {
				t.Errorf("%s: got %d %v, want %d with %s %v", what, got, response, status, member, want)
			}
		}
		expect("a refresh of unchanged rules", "/refresh", "", 200, "changed", false)
		document.Store(feeDocument(1100))
		expect("a dry run", "/refresh?dryRun=1", "", 200, "version", 2)
		expect("a refresh", "/refresh", "", 200, "version", 2)
		expect("a quote", "/quote", `{"kind":"sale","amount":1000,"currency":"USD"}`, 200, "fee", 110)
		expect("a quote with the previous version", "/quote", `{"kind":"sale","amount":1000,"currency":"USD","version":1}`, 200, "fee", 100)
		document.Store(feeDocument(5000))
		command := func(code int, reports string, args ...string) {
			t.Helper()
			if out, errs := s.command(code, append([]string{"fees"}, args...)...); !strings.Contains(out+errs, reports) {
				t.Errorf("%v: got %s%s, want %s in it", args, out, errs, reports)
			}
		}
		command(0, "version 3 would follow version 2", "refresh", "--dry-run", "--allow-large-change")
		command(0, "these changes need --allow-large-change", "refresh", "--dry-run")
		expect("a dry run of a large change", "/refresh?dryRun=1", "", 200, "dryRun", true)
		expect("a large change", "/refresh", "", 409, "code", "large_fee_change")
		command(7, "large_fee_change", "refresh")
		document.Store(`{"rules":[{}]}`)
		expect("an invalid document", "/refresh", "", 422, "code", "invalid_fee_rules")
		command(7, "/rules/0/priority: is required", "refresh", "--allow-large-change")
		at.Close()
		expect("a refresh without a server at the address", "/refresh", "", 502, "code", "fee_rules_unreachable")
		command(3, "fee_rules_unreachable", "refresh")
		command(0, "version 2, from "+at.URL, "show")
		expect("a rollback", "/rollback?version=1", "", 200, "version", 3)
		if now := s.feeRules(); now.Version != 3 || now.Rules.Fallback.BasisPoints != 1000 {
			t.Errorf("got version %d with %d points, want 3 with 1000", now.Version, now.Rules.Fallback.BasisPoints)
		}
		s.kill()
		s.start() // no server at the address
		if now := s.feeRules(); now.Version != 3 {
			t.Errorf("after a restart: got version %d, want 3", now.Version)
		}
	})
}
