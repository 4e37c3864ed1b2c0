package river

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"assay/internal/dispatch"
)

// channelSuffix follows the schema's name in the name of the channel, since
// channels are shared by all schemas of a database.
const channelSuffix = "_assay_look"

// listenTimeout bounds how long it takes to start listening.
const listenTimeout = 10 * time.Second

// ping is how often an idle connection is checked.
const ping = 15 * time.Second

// listen wakes the workers of this process on notifications of other processes,
// until ctx ends.
func (d *Dispatcher) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.listenOnce(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("listening failed; workers find work in their next sweep", "error", err)
		}
		dispatch.Wait(ctx, pause)
	}
}

// listenOnce listens until the connection breaks.
func (d *Dispatcher) listenOnce(ctx context.Context) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // it may be broken
	}()
	for kind := range d.queueOf { // notifications before this point were missed
		d.local.Wake(kind)
	}
	for {
		hearing, cancel := context.WithTimeout(ctx, ping)
		n, err := conn.WaitForNotification(hearing)
		quiet := hearing.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			d.hear(n.Payload)
		case !quiet:
			return err
		default:
			if err := d.try(ctx, conn); err != nil {
				return err
			}
		}
	}
}

// connect opens a connection that listens.
func (d *Dispatcher) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, d.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	var schema string
	err = conn.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema)
	if err == nil {
		_, err = conn.Exec(ctx, `LISTEN `+pgx.Identifier{schema + channelSuffix}.Sanitize())
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// try checks the connection.
func (d *Dispatcher) try(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	return conn.Ping(ctx)
}

// hear wakes the workers that a notification names. It ignores notifications of
// this process, whose workers are awake already.
func (d *Dispatcher) hear(payload string) {
	from, kind, _ := strings.Cut(payload, " ")
	if from != d.id {
		d.local.Wake(kind)
	}
}

// atLeast drops records below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
