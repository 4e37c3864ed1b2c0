// Command assay keeps the prices of game items fresh. `assay --help` lists its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // schedules use time zones; containers and Windows may have no time zone data

	"assay/internal/cli"
)

func main() { os.Exit(run()) }

// run executes the command line and returns the exit code. The first signal cancels the
// command. The second signal kills the process.
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
