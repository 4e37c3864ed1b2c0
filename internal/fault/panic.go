package fault

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Panic is a recovered panic with its stack. For a runtime error, Cause is the error text.
// For any other panic value, Cause is only its type, because the value may contain secrets.
type Panic struct {
	Cause string
	Stack string
}

// Recovered converts the result of recover to an error, or returns nil for nil. Call it
// in the deferred function, where the stack still shows the panic.
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
