//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal is a pseudo-terminal with a program in its foreground.
type terminal struct {
	s       *server
	control *os.File // reads the screen and types
	line    *os.File // terminal of the program
	screen  *buffer
	cmd     *exec.Cmd
	ended   chan struct{}
}

// ioctl calls a request of a terminal.
func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument)); code != 0 {
			failed = code
		}
	})
	return errors.Join(err, failed)
}

// runOnTerminal starts a command of the program on a new terminal.
func (s *server) runOnTerminal(args ...string) *terminal {
	s.t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	var unlocked, number int32
	if err := errors.Join(ioctl(control, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked)), ioctl(control, syscall.TIOCGPTN, unsafe.Pointer(&number))); err != nil {
		s.t.Fatal(err)
	}
	line, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	t := &terminal{s: s, control: control, line: line, screen: &buffer{}, cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	t.cmd.Env = s.env
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = line, line, line
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := t.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(t.ended)
		_ = t.cmd.Wait()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(t.screen, control) // ends with an error when the terminal is closed
	}()
	s.t.Cleanup(func() {
		_ = t.cmd.Process.Kill()
		<-t.ended
		_ = line.Close()
		_ = control.Close()
		<-read
	})
	return t
}

// echoes reports whether the terminal shows what is typed.
func (t *terminal) echoes() bool {
	t.s.t.Helper()
	var settings syscall.Termios
	if err := ioctl(t.line, syscall.TCGETS, unsafe.Pointer(&settings)); err != nil {
		t.s.t.Fatal(err)
	}
	return settings.Lflag&syscall.ECHO != 0
}

// answer waits for a prompt that hides the input, and types text.
func (t *terminal) answer(prompt, text string) {
	t.s.t.Helper()
	t.s.await("the prompt "+prompt, func() bool { return strings.HasSuffix(t.screen.String(), prompt) && !t.echoes() })
	if _, err := io.WriteString(t.control, text); err != nil {
		t.s.t.Fatal(err)
	}
}

// ends waits for the end of the program. The terminal must show what is typed again.
func (t *terminal) ends(code int, shows string) {
	t.s.t.Helper()
	t.s.await("the end of the program", func() bool {
		select {
		case <-t.ended:
			return true
		default:
			return false
		}
	})
	if got := t.cmd.ProcessState.ExitCode(); got != code {
		t.s.t.Errorf("exit code: got %d, want %d", got, code)
	}
	if !t.echoes() {
		t.s.t.Error("terminal after the end: got the echo off, want it on")
	}
	t.s.await("the text "+shows, func() bool { return strings.Contains(t.screen.String(), shows) })
}

// TestOperators_PromptHidesPassword enters passwords on a terminal.
func TestOperators_PromptHidesPassword(t *testing.T) {
	t.Parallel()
	const first, again, password, interrupt = "Password: ", "Password again: ", "a password of anna", "\x03"
	s := newServer(t)
	s.start()

	v := s.runOnTerminal("operators", "create", "anna", "--role", "admin")
	v.answer(first, password+"\n")
	v.answer(again, password+"\n")
	v.ends(0, "the operator anna has the role admin")
	if screen := v.screen.String(); strings.Contains(screen, "password of") {
		t.Errorf("screen: got %q, want it without the password", screen)
	}

	v = s.runOnTerminal("operators", "password", "anna")
	v.answer(first, password+"\n")
	v.answer(again, password+"!\n")
	v.ends(2, "the two passwords differ")

	v = s.runOnTerminal("operators", "password", "anna")
	v.answer(first, interrupt)
	v.ends(130, first)

	v = s.runOnTerminal("operators", "password", "anna")
	v.answer(first, password+"\n")
	v.answer(again, interrupt)
	v.ends(130, again)
}
