package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const (
	monitorPage = "docs/how-to/schedule-and-monitor.md"
	alertRules  = "deploy/prometheus/alerts.yml"
	boardFile   = "deploy/grafana/assay.json"
)

// metric is a metric that the code declares.
type metric struct {
	kind   string // counter, gauge or histogram
	help   string
	labels []string
}

// ownMetrics returns the metrics that the code declares, by name.
func ownMetrics(t *testing.T) map[string]metric {
	t.Helper()
	found := map[string]metric{}
	quoted := regexp.MustCompile(`"(\w+)"`)
	add := func(name, kind, help, labels string) {
		m := metric{kind: kind, help: help, labels: []string{}}
		for _, l := range quoted.FindAllStringSubmatch(labels, -1) {
			m.labels = append(m.labels, l[1])
		}
		found[name] = m
	}
	var collector strings.Builder // the collector is divided into several files
	walk(t, "internal/app", ".go", func(path string) { collector.WriteString(read(t, path)) })
	short := regexp.MustCompile(`(\w+): +d\("([a-z_]+)", "([^"]*)"(.*)\)`)
	for _, m := range short.FindAllStringSubmatch(collector.String(), -1) {
		kind := "gauge"
		if regexp.MustCompile(`\.` + m[1] + `, prometheus\.CounterValue`).MatchString(collector.String()) {
			kind = "counter"
		} else if regexp.MustCompile(`MustNewConstHistogram\([\w.]+\.` + m[1] + `,`).MatchString(collector.String()) {
			kind = "histogram"
		}
		add("assay_"+m[2], kind, m[3], m[4])
	}
	long := regexp.MustCompile(`(?s)prometheus\.New(\w+?)(?:Vec|Func)\(prometheus\.\w+Opts\{\s*Name: "(assay_\w+)", Help: "([^"]*)".*?\}, (?:\[\]string\{(.*?)\}\)|func\()`)
	walk(t, "internal", ".go", func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			for _, m := range long.FindAllStringSubmatch(read(t, path), -1) {
				add(m[2], strings.ToLower(m[1]), m[3], m[4])
			}
		}
	})
	if len(found) < 40 {
		t.Fatalf("found %d metrics, want at least 40: the test no longer recognizes them", len(found))
	}
	return found
}

// processMetrics returns the names of the metrics of the Go runtime and the process.
func processMetrics(t *testing.T) map[string]bool {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

// TestMetrics_AreTheDocumentedOnes compares docs/reference/metrics.md with the metrics of the
// code. With ASSAY_UPDATE=1 it rewrites the table of the page.
func TestMetrics_AreTheDocumentedOnes(t *testing.T) {
	const page = "docs/reference/metrics.md"
	const from, to = "<!-- metrics: make generate -->\n", "<!-- end of metrics -->"
	text := read(t, page)
	head, rest, found := strings.Cut(text, from)
	_, tail, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("%s: the comments around the table are missing", page)
	}
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	own := ownMetrics(t)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		labels := ""
		if m := own[name]; len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, own[name].kind, labels, own[name].help)
	}
	want := head + from + table.String() + to + tail
	if os.Getenv("ASSAY_UPDATE") == "1" {
		if err := os.WriteFile(filepath.Join(root, page), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != text {
		t.Errorf("%s is out of date: run make generate", page)
	}
}

var (
	metricName = regexp.MustCompile(`\b(assay|go|process|node)_[a-z_]+`)
	selector   = regexp.MustCompile(`\b(assay_[a-z_]+)\{([^{}]*(?:\{\w+\}[^{}]*)*)\}`)
	matcher    = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
)

// checkExpression reports metrics and labels of a PromQL expression that no program exports.
func checkExpression(t *testing.T, own map[string]metric, process map[string]bool, where, expr string) {
	t.Helper()
	base := func(name string) string {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if cut := strings.TrimSuffix(name, suffix); own[cut].kind != "" {
				return cut
			}
		}
		return name
	}
	unquoted := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, `""`)
	for _, name := range metricName.FindAllString(unquoted, -1) {
		if own[base(name)].kind == "" && !process[name] && !strings.HasPrefix(name, "node_") {
			t.Errorf("%s: the metric %s does not exist", where, name)
		}
	}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if scraped := l[1] == "job" || l[1] == "instance" || l[1] == "le"; !scraped && !slices.Contains(own[base(m[1])].labels, l[1]) {
				t.Errorf("%s: the metric %s has no label %s", where, m[1], l[1])
			}
		}
	}
}

func TestAlerts_AreDescribedTestedAndUseRealMetrics(t *testing.T) {
	rules, page := read(t, alertRules), read(t, monitorPage)
	tests := read(t, "deploy/prometheus/alerts.test.yml") + read(t, "deploy/prometheus/alerts-long.test.yml")
	alerts := map[string]bool{}
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		alerts[m[1]] = true
		if !strings.Contains(page, "\n| `"+m[1]+"` | ") {
			t.Errorf("the alert %s is not described", m[1])
		}
		if !regexp.MustCompile(`alertname: ` + m[1] + `\n +exp_alerts:`).MatchString(tests) {
			t.Errorf("no test makes the alert %s fire", m[1])
		}
	}
	if len(alerts) < 20 {
		t.Fatalf("found %d alerts, want at least 20", len(alerts))
	}
	for _, m := range regexp.MustCompile("`(Assay[A-Z]\\w+)`").FindAllStringSubmatch(page, -1) {
		if !alerts[m[1]] {
			t.Errorf("the page describes the alert %s, which does not exist", m[1])
		}
	}
	own, process := ownMetrics(t), processMetrics(t)
	for _, m := range regexp.MustCompile(`(?m)^ +(?:expr: (?:>-\n)?)?(.*assay_.*)$`).FindAllStringSubmatch(rules, -1) {
		checkExpression(t, own, process, alertRules, m[1])
	}
	promtool(t, filepath.Join(root, "deploy/prometheus"), "test", "rules", "alerts.test.yml", "alerts-long.test.yml")
}

// board is the part of a Grafana board that a test can check.
type board struct {
	UID    string `json:"uid"`
	Title  string `json:"title"`
	Panels []struct {
		ID          int            `json:"id"`
		Type        string         `json:"type"`
		Title       string         `json:"title"`
		Description string         `json:"description"`
		Grid        map[string]int `json:"gridPos"`
		Targets     []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

func TestBoard_ShowsRealMetricsInValidExpressions(t *testing.T) {
	var b board
	if err := json.Unmarshal([]byte(read(t, boardFile)), &b); err != nil {
		t.Fatal(err)
	}
	if b.UID == "" || b.Title == "" || len(b.Panels) < 20 {
		t.Fatalf("the dashboard has no id or no title, or has %d panels, want both and at least 20 panels", len(b.Panels))
	}
	own, process := ownMetrics(t), processMetrics(t)
	ids, shown := map[int]bool{}, map[string]bool{}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: board\n  rules:\n")
	for _, p := range b.Panels {
		if ids[p.ID] || p.Grid["x"]+p.Grid["w"] > 24 {
			t.Errorf("the panel %q repeats an id or is wider than the board", p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.Title == "" || p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("the panel %q has no title, description or figures", p.Title)
		}
		for i, target := range p.Targets {
			checkExpression(t, own, process, p.Title, target.Expr)
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown[name] = true
			}
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", "assay").Replace(target.Expr)
			quoted, _ := json.Marshal(expr) // a JSON string is a YAML string
			fmt.Fprintf(&rules, "  - record: panel_%d_%d\n    expr: %s\n", p.ID, i, quoted)
		}
	}
	if len(shown) < 30 {
		t.Errorf("the dashboard shows %d metrics, want at least 30: %v", len(shown), slices.Sorted(maps.Keys(shown)))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "board.yml"), []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "board.yml")
}

// promtool runs Prometheus' tool in a directory.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed: it comes with Debian's package prometheus")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: got error %v, want none\n%s", args, err, out)
	}
}
