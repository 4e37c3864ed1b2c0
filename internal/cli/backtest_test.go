package cli

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// quotesOf writes quotes of four markets for 400 names. The quotes differ by some percent. For
// every tenth name, one market has an absurd quote.
func quotesOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("time,market,name,price,currency\n")
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 400 {
		for k := range 4 {
			price := int(float64(200+40*i) * math.Exp(0.05*r.NormFloat64()))
			if i%10 == 0 && k == 3 {
				price = 143_800
			}
			fmt.Fprintf(&b, "2026-10-05,m%d,Skin %d (Field-Tested),%d.%02d,USD\n", k, i, price/100, price%100)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "prices.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func backtestOf(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	p := Program{Args: append([]string{"backtest"}, args...), Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Now: time.Now}
	return p.Run(context.Background()), o.String(), e.String()
}

func TestBacktest_ExitCodeReportsExceededLimits(t *testing.T) {
	dir := quotesOf(t)
	plots := filepath.Join(t.TempDir(), "plots")
	code, out, errs := backtestOf(dir, "--plots", plots)
	if code != exitOK || !strings.Contains(out, "leave one market out") || strings.Contains(out, "BEYOND") || !strings.Contains(errs, "clean data") {
		t.Errorf("consensus: got exit code %d, want 0 and a table without exceeded limits:\n%s%s", code, out, errs)
	}
	if svg, err := os.ReadFile(filepath.Join(plots, "leave-one-out.svg")); err != nil || !bytes.HasPrefix(svg, []byte("<svg")) {
		t.Errorf("plot: got error %v, want an SVG file", err)
	}
	code, out, _ = backtestOf(dir, "--estimate", "average", "--json")
	var report backtestReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("decode the report: got error %v, want none, in\n%s", err, out)
	}
	if code != exitFailed || report.OK || report.Names != 400 || report.Markets != 4 || len(report.Experiments) < 8 {
		t.Errorf("average: got exit code %d, report %+v, want 1 and a failed report of 400 names and 4 markets", code, report)
	}
}

func TestBacktest_ExplainsInvalidInput(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{t.TempDir()}, exitFailed, "no .csv file"},
		{[]string{".", "--estimate", "robust"}, exitUsage, "use consensus, average or median"},
		{[]string{".", "--guard", "none"}, exitUsage, "--guard"},
		{[]string{".", "--currency", "dollar"}, exitUsage, "--currency"},
		{[]string{".", "--rate", "CNY"}, exitUsage, "--rate"},
		{[]string{".", "--names", "-1"}, exitUsage, "--names"},
	} {
		if code, _, errs := backtestOf(tt.args...); code != tt.code || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: got exit code %d, error %s, want %d and %q", tt.args, code, errs, tt.code, tt.want)
		}
	}
}
