package fault

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Panic is a recovered panic: its stack and, only if the runtime raised it, its
// text. Any other value could hold a secret.
type Panic struct {
	Cause string
	Stack string
}

// Recovered makes an error of the result of recover; nil for nil. Call it in the deferred
// function, where the stack is still that of the panic.
func Recovered(value any) *Panic {
	if value == nil {
		return nil
	}
	cause := fmt.Sprintf("%T", value)
	if err, ok := value.(error); ok {
		if known, ok := errors.AsType[runtime.Error](err); ok {
			cause = known.Error()
		}
	}
	return &Panic{Cause: cause, Stack: string(debug.Stack())}
}

// Error returns the cause without the stack.
func (p *Panic) Error() string { return "panic: " + p.Cause }
