// Command assay keeps the prices of game items fresh. `assay --help` lists what
// it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"assay/internal/cli"
)

func main() { os.Exit(run()) }

// run carries out the command line and returns the exit code. The first signal
// asks the command to end; a second one ends the process at once.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return cli.Program{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Now:     time.Now,
	}.Run(ctx)
}
