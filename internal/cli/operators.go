package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"assay/internal/config"
	"assay/internal/view"
)

// operatorsCmd contains the commands for operators of the operator's page.
type operatorsCmd struct {
	List     operatorsListCmd     `cmd:"" default:"withargs" help:"List the operators."`
	Create   operatorsCreateCmd   `cmd:"" help:"Add an operator. The password is read from a prompt or standard input."`
	Role     operatorsRoleCmd     `cmd:"" help:"Change the role of an operator."`
	Password operatorsPasswordCmd `cmd:"" help:"Set a new password, read from a prompt or standard input."`
	Disable  operatorsDisableCmd  `cmd:"" help:"Disable an operator. All sessions of the operator end."`
	Enable   operatorsEnableCmd   `cmd:"" help:"Enable a disabled operator."`
}

// operatorRequest returns a request for the operator with this name. An empty name means all
// operators.
func operatorRequest(method, name string) request {
	r := request{method: method, path: "/api/operators", as: config.RoleAdmin}
	if name != "" {
		r.path += "/" + segment(name)
	}
	return r
}

// operatorBody is the body of a request that creates or changes an operator.
type operatorBody struct {
	Name     string `json:"name,omitzero"`
	Role     string `json:"role,omitzero"`
	Password string `json:"password,omitzero"`
	Disabled *bool  `json:"disabled,omitzero"`
}

// changeOperator sends changes of an operator and prints the operator.
func changeOperator(ctx context.Context, s *session, name string, body operatorBody) error {
	r := operatorRequest(http.MethodPatch, name)
	r.body = body
	return show(ctx, s, r, writeOperator)
}

// operatorsListCmd lists operators.
type operatorsListCmd struct{}

func (*operatorsListCmd) examples() []example {
	return []example{{"operators list", "list the operators with their roles"}}
}

func (*operatorsListCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, operatorRequest("", ""), func(w io.Writer, page *view.Page[view.Operator]) {
		rows := [][]string{{"OPERATOR", "ROLE", "STATE", "ADDED", "CHANGED"}}
		for _, o := range page.Items {
			rows = append(rows, []string{cell(o.Name), cell(o.Role), operatorState(&o), moment(&o.CreatedAt), moment(&o.ChangedAt)})
		}
		table(w, rows)
	})
}

func operatorState(o *view.Operator) string {
	if o.Disabled {
		return "disabled"
	}
	return "enabled"
}

func writeOperator(w io.Writer, o *view.Operator) {
	_, _ = fmt.Fprintf(w, "the operator %s has the role %s and is %s\n", printable(o.Name), printable(o.Role), operatorState(o))
}

// operatorsCreateCmd adds an operator.
type operatorsCreateCmd struct {
	Name string `arg:"" help:"Name: lower-case letters, digits, dots and hyphens."`
	Role string `default:"read" enum:"read,admin" help:"Role: read, or admin."`
}

func (*operatorsCreateCmd) examples() []example {
	return []example{
		{"operators create anna --role admin", "enter a password, and add an operator who can change everything"},
		{"operators create ben --json", "add a reader and print it as JSON; without a terminal, the password is the first line of standard input"},
	}
}

func (c *operatorsCreateCmd) Run(ctx context.Context, s *session) (err error) {
	r := operatorRequest(http.MethodPost, "")
	body := operatorBody{Name: c.Name, Role: c.Role}
	if body.Password, err = s.readPassword(ctx); err != nil {
		return err
	}
	r.body = body
	return show(ctx, s, r, writeOperator)
}

// operatorsRoleCmd changes the role of an operator.
type operatorsRoleCmd struct {
	Name string `arg:"" help:"Name of the operator."`
	Role string `arg:"" enum:"read,admin" help:"Role: read, or admin."`
}

func (*operatorsRoleCmd) examples() []example {
	return []example{{"operators role ben admin", "let ben change everything; sessions of ben end"}}
}

func (c *operatorsRoleCmd) Run(ctx context.Context, s *session) error {
	return changeOperator(ctx, s, c.Name, operatorBody{Role: c.Role})
}

// operatorsPasswordCmd sets a new password.
type operatorsPasswordCmd struct {
	Name string `arg:"" help:"Name of the operator."`
}

func (*operatorsPasswordCmd) examples() []example {
	return []example{
		{"operators password anna", "enter a new password; sessions of anna end"},
		{"operators password anna --json", "print the operator as JSON; without a terminal, the password is the first line of standard input"},
	}
}

func (c *operatorsPasswordCmd) Run(ctx context.Context, s *session) error {
	password, err := s.readPassword(ctx)
	if err != nil {
		return err
	}
	return changeOperator(ctx, s, c.Name, operatorBody{Password: password})
}

// operatorsDisableCmd disables an operator.
type operatorsDisableCmd struct {
	Name string `arg:"" help:"Name of the operator."`
}

func (*operatorsDisableCmd) examples() []example {
	return []example{{"operators disable ben", "end the sessions of ben and refuse the password"}}
}

func (c *operatorsDisableCmd) Run(ctx context.Context, s *session) error {
	disabled := true
	return changeOperator(ctx, s, c.Name, operatorBody{Disabled: &disabled})
}

// operatorsEnableCmd enables an operator.
type operatorsEnableCmd struct {
	Name string `arg:"" help:"Name of the operator."`
}

func (*operatorsEnableCmd) examples() []example {
	return []example{{"operators enable ben", "let ben sign in again"}}
}

func (c *operatorsEnableCmd) Run(ctx context.Context, s *session) error {
	disabled := false
	return changeOperator(ctx, s, c.Name, operatorBody{Disabled: &disabled})
}

// maxPassword limits the first line of standard input in bytes. The server has a lower limit.
const maxPassword = 1024

// readPassword returns a password: on a terminal it prompts twice and does not show the text, otherwise
// it reads the first line of standard input.
func (s *session) readPassword(ctx context.Context) (string, error) {
	f, ok := s.Stdin.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		text, err := io.ReadAll(io.LimitReader(s.Stdin, maxPassword+1))
		if err != nil {
			return "", fmt.Errorf("read the password from standard input: %w", err)
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 || len(line) > maxPassword {
			return "", &usageError{text: fmt.Sprintf("the first line of standard input must be the password, at most %d bytes", maxPassword)}
		}
		return string(line), nil
	}
	first, err := s.ask(ctx, f, "Password: ")
	if err != nil {
		return "", err
	}
	again, err := s.ask(ctx, f, "Password again: ")
	if err == nil && first != again {
		err = &usageError{text: "the two passwords differ; enter the same one twice"}
	}
	return first, err
}

// ask prints a prompt and reads a line from the terminal without showing it. If ctx ends first, for
// example because of Ctrl-C, it turns the echo of the terminal on again.
func (s *session) ask(ctx context.Context, f *os.File, prompt string) (string, error) {
	terminal := int(f.Fd())
	before, err := term.GetState(terminal)
	if err != nil {
		return "", fmt.Errorf("read the settings of the terminal: %w", err)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	type result struct {
		line []byte
		err  error
	}
	read := make(chan result, 1)
	_, _ = io.WriteString(s.Stderr, prompt)
	// Nothing can interrupt a read from a terminal. After an interrupt, the read ends with the process.
	go func() {
		line, err := term.ReadPassword(terminal)
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		s.printf("")
		if r.err != nil {
			return "", fmt.Errorf("read the password from the terminal: %w", r.err)
		}
		return string(r.line), nil
	case <-ctx.Done():
		err := term.Restore(terminal, before)
		s.printf("")
		if err != nil {
			return "", fmt.Errorf("turn the echo of the terminal on: %w", err)
		}
		return "", ctx.Err()
	}
}
