package river

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"assay/internal/dispatch"
)

// channelSuffix follows the schema name in the name of the notification channel. The name
// includes the schema, because all schemas of a database share their channels.
const channelSuffix = "_assay_look"

// listenTimeout limits how long it takes to start listening.
const listenTimeout = 10 * time.Second

// pingInterval is the interval at which an idle connection is checked.
const pingInterval = 15 * time.Second

// listen wakes the workers of this process when another process sends a notification. It
// returns when ctx ends.
func (d *Dispatcher) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.listenOnce(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("listening failed; workers find work in their next sweep", "error", err)
		}
		dispatch.Wait(ctx, reconnectDelay)
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
		_ = conn.Close(closing) // the connection may be broken
	}()
	for kind := range d.queueOf { // notifications sent before this point were missed
		d.local.Wake(kind)
	}
	for {
		waiting, cancel := context.WithTimeout(ctx, pingInterval)
		n, err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			d.handle(n.Payload)
		case !quiet:
			return err
		default:
			if err := d.ping(ctx, conn); err != nil {
				return err
			}
		}
	}
}

// connect opens a connection that listens for notifications.
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

// ping checks the connection.
func (d *Dispatcher) ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	return conn.Ping(ctx)
}

// handle wakes the workers of the kind in a notification. It ignores notifications of
// this process, whose workers are already awake.
func (d *Dispatcher) handle(payload string) {
	from, kind, _ := strings.Cut(payload, " ")
	if from != d.id {
		d.local.Wake(kind)
	}
}

// levelFilter drops log records below a level.
type levelFilter struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (h levelFilter) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h levelFilter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelFilter{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h levelFilter) WithGroup(name string) slog.Handler {
	return levelFilter{h.Handler.WithGroup(name), h.level}
}
