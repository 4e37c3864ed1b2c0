package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens the address of the server.
func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another program listens on %s: stop it, or set LISTEN_ADDR to another address: %w", address, err)
	}
	return l, err
}
