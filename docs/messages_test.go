package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// forbidden are words that hide the subject of a sentence, or stand for report,
// return, show and request.
var forbidden = regexp.MustCompile(`(?i)\b(nobody|whoever|somebody|whom|told|tells?|says?|said|asks? for|asked( for)?|(is|be) had|for want of|of those that|anew|sick|forgone?|forgo|he|his|him|trying again|up to most|at most most)\b`)

// sqlText matches a part of a statement.
var sqlText = regexp.MustCompile(`\b(SELECT|UPDATE|INSERT|DELETE|FROM|WHERE|SET|CASE|AND|JOIN|ORDER BY)\b`)

// wrapped maps functions that pass a text on to fault.New to the position of this argument.
var wrapped = map[string]int{"internal/inventory/steaminv.later": 2, "internal/market.noInventory": 0, "internal/market.conflict": 1}

// message is a text of the program that a user or an operator reads.
type message struct {
	kind string // problem, detail of a problem, log, cli, text (any other)
	at   string // file and line
	text string // empty for a log message that is not constant
}

// fault returns what is wrong with the message, or "" if nothing is.
func (m message) fault() string {
	first, _, _ := strings.Cut(m.text, " ")
	switch {
	case m.kind == "log" && m.text == "":
		return "a log message must be constant: put details in attributes"
	case forbidden.MatchString(m.text):
		return fmt.Sprintf("%q is no plain English: use a concrete subject and report, return, show or request", forbidden.FindString(m.text))
	case m.kind == "log" && (unicode.IsUpper([]rune(m.text)[0]) && first != strings.ToUpper(first) || strings.HasSuffix(m.text, ".")):
		return "a log message begins in lower case and has no full stop"
	case m.kind == "problem" && (!isSentence(m.text)):
		return "a problem text must be a sentence"
	}
	return ""
}

// isSentence reports whether a text begins with a capital and ends with a full stop. A
// value may stand at either end.
func isSentence(text string) bool {
	begin := []rune(text)[0]
	return (unicode.IsUpper(begin) || strings.ContainsRune("%/", begin)) && (strings.HasSuffix(text, ".") || strings.HasSuffix(text, "%s") || strings.HasSuffix(text, "%v"))
}

// TestMessages_ArePlainEnglish checks the problem texts of the API, the log messages, and the errors,
// help texts and examples of the command line. In all other texts, such as reasons of fields,
// findings, help of settings, templates and the API document, it checks only the words.
func TestMessages_ArePlainEnglish(t *testing.T) {
	var faults []string
	kinds := map[string]int{}
	for _, dir := range []string{"cmd", "internal"} {
		walk(t, dir, ".go", func(file string) {
			if strings.HasSuffix(file, "_test.go") {
				return
			}
			for _, m := range messages(t, file) {
				kinds[m.kind]++
				if fault := m.fault(); fault != "" {
					faults = append(faults, fmt.Sprintf("%s: %s %q: %s", m.at, m.kind, m.text, fault))
				}
			}
		})
	}
	for _, ext := range []string{".html", ".txt"} {
		walk(t, "internal", ext, func(file string) {
			for i, line := range strings.Split(read(t, file), "\n") {
				kinds["line"]++
				if word := forbidden.FindString(line); word != "" {
					faults = append(faults, fmt.Sprintf("%s:%d: %q is no plain English", file, i+1, word))
				}
			}
		})
	}
	for kind, least := range map[string]int{"problem": 100, "log": 30, "cli": 150, "text": 700, "line": 1500} {
		if kinds[kind] < least {
			t.Errorf("found %d messages of the kind %s, want at least %d: the test no longer recognizes them", kinds[kind], kind, least)
		}
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// failureText matches the constant text of a failure in a test.
var failureText = regexp.MustCompile(`\.(?:Errorf|Fatalf|Error|Fatal)\((?:"((?:[^"\\]|\\.)*)"|` + "`([^`]*)`)")

// TestMessages_OfFailedTestsStateWhatIsWanted checks that a failure that prints what the test got also
// states what it wants.
func TestMessages_OfFailedTestsStateWhatIsWanted(t *testing.T) {
	found := 0
	for _, dir := range []string{"bench", "client", "deploy", "docs", "e2e", "internal"} {
		walk(t, dir, "_test.go", func(file string) {
			for _, m := range failureText.FindAllStringSubmatch(read(t, file), -1) {
				text := strings.ReplaceAll(m[1]+m[2], `\n`, " ")
				if found++; slices.Contains(strings.Fields(text), "got") && !strings.Contains(text, "want") {
					t.Errorf("%s: got the failure %q, want one with \", want ...\"", file, text)
				}
			}
		})
	}
	if found < 2500 {
		t.Errorf("got %d failures of tests, want at least 2,500: the test no longer recognizes them", found)
	}
}

// messages lists the messages of a file.
func messages(t *testing.T, file string) (out []message) {
	t.Helper()
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(kind string, at ast.Node, text string) {
		out = append(out, message{kind, fmt.Sprintf("%s:%d", file, files.Position(at.Pos()).Line), text})
	}
	cli := strings.HasPrefix(file, "cmd/") || strings.HasPrefix(file, "internal/cli/")
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if kind, at := called(n, path.Dir(file), cli); kind != "" && at < len(n.Args) {
				text, constant := constant(n.Args[at])
				if constant && text != "%s" || kind == "log" {
					add(kind, n, text)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Detail" || cli && key.Name == "hint") {
				if text, ok := constant(n.Value); ok && text != "" {
					add("detail", n, text)
				}
			}
		case *ast.Field:
			if n.Tag != nil && cli {
				tag, _ := strconv.Unquote(n.Tag.Value)
				if help := reflect.StructTag(tag).Get("help"); help != "" {
					add("cli", n, help)
				}
			}
		case *ast.BasicLit:
			if text, ok := constant(n); ok && len(strings.Fields(text)) > 2 && !sqlText.MatchString(text) {
				add("text", n, text)
			}
		case *ast.CompositeLit: // an example: a command and what it does
			if len(n.Elts) == 2 && n.Type == nil && cli {
				if text, ok := constant(n.Elts[1]); ok && text != "" {
					add("cli", n, text)
				}
			}
		}
		return true
	})
	return out
}

// called returns the kind of message that a call makes, and which argument it is.
func called(call *ast.CallExpr, dir string, cli bool) (kind string, at int) {
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		if name, ok := call.Fun.(*ast.Ident); ok {
			if at, ok := wrapped[dir+"."+name.Name]; ok {
				return "problem", at
			}
		}
		return "", 0
	}
	var of string
	switch x := fn.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	case *ast.CallExpr:
		if name, ok := x.Fun.(*ast.Ident); ok && name.Name == "blame" {
			of = "log"
		}
	}
	name, inContext := strings.CutSuffix(fn.Sel.Name, "Context")
	switch {
	case of == "fault" && name == "New":
		return "problem", 2
	case slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, name) && slices.Contains([]string{"log", "logger", "slog"}, strings.ToLower(of)):
		if inContext {
			return "log", 1
		}
		return "log", 0
	case cli && (of == "errors" && name == "New" || of == "fmt" && name == "Errorf"):
		return "cli", 0
	case cli && name == "printf":
		return "cli", 0
	}
	return "", 0
}

// constant returns the text of a string literal, or of several that are joined.
func constant(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := constant(e.X)
		if !ok {
			return "", false
		}
		right, ok := constant(e.Y)
		return left + right, ok
	}
	return "", false
}
