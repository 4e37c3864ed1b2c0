// Package kit_test checks the files for operators: the image, the compose file, the chart and the
// units. The tests start none of them.
package kit_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

const root = "../.."

var emptyValue = regexp.MustCompile(`(?m)^(\w+)=$`)

// loadCompose loads compose.yaml as `docker compose` does, with the settings of the example, and the
// secrets of the example set to value.
func loadCompose(t *testing.T, value string) (*types.Project, error) {
	t.Helper()
	dir := t.TempDir()
	for name, source := range map[string]string{".env": "deploy/compose/env.example", "assay.env": "deploy/compose/assay.env.example", "compose.yaml": "compose.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, source))
		if err != nil {
			t.Fatal(err)
		}
		if name == ".env" {
			text = emptyValue.ReplaceAll(text, []byte("${1}="+value))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithWorkingDirectory(dir), cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		t.Fatal(err)
	}
	return o.LoadProject(t.Context())
}

func TestCompose_IsValidAndComplete(t *testing.T) {
	p, err := loadCompose(t, strings.Repeat("5eed", 16))
	if err != nil {
		t.Fatal(err)
	}
	if names := p.ServiceNames(); len(names) != 4 {
		t.Fatalf("got the services %v, want 4", names)
	}
	for name, s := range p.Services {
		if _, tag, ok := strings.Cut(s.Image, ":"); !ok || tag == "" || tag == "latest" {
			t.Errorf("service %s: got the image %s, want a fixed version", name, s.Image)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				rel, err := filepath.Rel(p.WorkingDir, v.Source)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(filepath.Join(root, rel)); err != nil || !v.ReadOnly {
					t.Errorf("service %s: got the mount %s (error %v, read-only %v), want an existing file, read-only", name, rel, err, v.ReadOnly)
				}
			} else if _, ok := p.Volumes[v.Source]; !ok {
				t.Errorf("service %s mounts the unknown volume %s", name, v.Source)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("service %s: got the host address %q, want 127.0.0.1", name, port.HostIP)
			}
		}
	}
	assay := p.Services["assay"]
	if !assay.ReadOnly || !slices.Equal(assay.CapDrop, []string{"ALL"}) || assay.DependsOn["postgres"].Condition != types.ServiceConditionHealthy {
		t.Errorf("service assay: got read-only %v, dropped capabilities %v, dependencies %v, want true, ALL and a healthy database", assay.ReadOnly, assay.CapDrop, assay.DependsOn)
	}
	known := settings(t)
	for name, value := range assay.Environment {
		if !known[name] && name != "PGPASSWORD" || value == nil || *value == "" {
			t.Errorf("the environment has %s, which is not a setting of Assay or has no value", name)
		}
	}
	for _, name := range []string{"DATABASE_URL", "MARKET_PRICE_PROVIDERS", "MARKET_PRICE_SCHEDULE"} {
		if assay.Environment[name] == nil {
			t.Errorf("the setting %s is missing", name)
		}
	}
}

// TestCompose_GivesEachContainerItsSecretsOnly gives each secret a value of its own and looks for it
// in the environment of all containers.
func TestCompose_GivesEachContainerItsSecretsOnly(t *testing.T) {
	p, err := loadCompose(t, "value-of-${1}")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name, s := range p.Services {
		for _, value := range s.Environment {
			if secret, ok := strings.CutPrefix(*value, "value-of-"); ok {
				got[secret] = append(got[secret], name)
			}
		}
	}
	want := map[string][]string{
		"MARKET_PRICE_SYNC_SECRET": {"assay"}, "PLATFORM_API_TOKEN": {"assay"}, "ADMIN_API_TOKEN": {"assay"}, "WALLET_LEDGER_KEY": {"assay"},
		"POSTGRES_PASSWORD": {"assay", "postgres"}, "GRAFANA_PASSWORD": {"grafana"},
	}
	for _, names := range got {
		slices.Sort(names)
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("services that read each secret: got %v, want %v", got, want)
	}
}

func TestCompose_RefusesMissingSecrets(t *testing.T) {
	if _, err := loadCompose(t, ""); err == nil || !strings.Contains(err.Error(), "set it in .env") {
		t.Errorf("got error %v, want the name of a missing secret", err)
	}
}

// source returns a file of the repository.
func source(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestVendor_CopiesEachScriptOfThePage compares the files that the Makefile and the Dockerfile copy
// with the links of the page.
func TestVendor_CopiesEachScriptOfThePage(t *testing.T) {
	copied := source(t, "internal/web/package.json")
	templates, err := filepath.Glob(root + "/internal/web/templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, name := range templates {
		text := source(t, "internal/web/templates/"+filepath.Base(name))
		for _, link := range regexp.MustCompile(`asset "vendor/([^"]+)"`).FindAllStringSubmatch(text, -1) {
			if links++; !strings.Contains(copied, "/"+link[1]) {
				t.Errorf("package.json: the script vendor does not copy %s, which %s links", link[1], filepath.Base(name))
			}
		}
	}
	if links < 4 {
		t.Errorf("got %d links of copied scripts, want at least 4", links)
	}
	for _, file := range []string{"Makefile", "Dockerfile"} {
		if !strings.Contains(source(t, file), "--silent vendor") {
			t.Errorf("%s does not run the script vendor of the page", file)
		}
	}
}

// TestDockerfile_IsValidAndSmall parses the Dockerfile with BuildKit, whose linter must find nothing.
func TestDockerfile_IsValidAndSmall(t *testing.T) {
	f, err := os.Open(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, description, _, message string, at []parser.Range) {
		t.Errorf("Dockerfile: got the warning %s: %s (%s) at %v, want none", rule, message, description, at)
	}})
	stages, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("Dockerfile: got the parser warning %s, want none", w.Short)
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("got an image based on %s, want scratch", last.BaseName)
	}
	known, have := settings(t), map[string]string{}
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			have["user"] = c.User
		case *instructions.HealthCheckCommand:
			have["health"] = strings.Join(c.Health.Test, " ")
		case *instructions.EntrypointCommand:
			have["entry"] = strings.Join(c.CmdLine, " ")
		case *instructions.RunCommand:
			t.Error("got a RUN instruction in the last stage, want none: the stage has no shell")
		case *instructions.EnvCommand:
			for _, kv := range c.Env {
				if kv.Key != "PATH" && kv.Key != "HOME" && !known[kv.Key] {
					t.Errorf("%s is not a setting of Assay", kv.Key)
				}
			}
		}
	}
	want := map[string]string{"user": "65532:65532", "health": "CMD /usr/bin/assay healthcheck", "entry": "/usr/bin/assay"}
	for name := range want {
		if have[name] != want[name] {
			t.Errorf("%s of the image: got %q, want %q", name, have[name], want[name])
		}
	}
}

// compiled returns the files of the main module that the compiler reads.
func compiled(t *testing.T) (files []string) {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Module,GoFiles,EmbedFiles", "./cmd/assay")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir                 string
			Module              *struct{ Main bool }
			GoFiles, EmbedFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		for _, name := range append(p.GoFiles, p.EmbedFiles...) {
			rel, err := filepath.Rel(top, filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, rel)
		}
	}
	if len(files) < 200 {
		t.Fatalf("found %d files that the compiler reads, want at least 200", len(files))
	}
	return files
}

func TestDockerignore_KeepsWhatTheBuildNeeds(t *testing.T) {
	f, err := os.Open(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	patterns, err := ignorefile.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(compiled(t), "go.mod", "go.sum", "internal/web/package.json", "internal/web/package-lock.json") {
		if skip, err := ignored.MatchesOrParentMatches(file); err != nil || skip {
			t.Errorf("%s is not sent to the builder, want it sent (error %v)", file, err)
		}
	}
	for _, file := range []string{".git/HEAD", ".env", "data/secrets/ADMIN_API_TOKEN", "bin/assay", "assay.env"} {
		if skip, err := ignored.MatchesOrParentMatches(file); err != nil || !skip {
			t.Errorf("%s is sent to the builder, want it ignored (error %v)", file, err)
		}
	}
}
