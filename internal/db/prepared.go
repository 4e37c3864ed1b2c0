package db

import (
	"context"
	"database/sql"
	"sync"
)

// prepared is a pool of connections on which a query is parsed once and not each
// time, which would cost as much as running a small one. The texts must be few:
// none is forgotten.
type prepared struct {
	*sql.DB
	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

// QueryContext is that of sql.DB.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // it stays for the next caller
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRowContext is that of sql.DB.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // it stays for the next caller
	if err != nil {
		return p.DB.QueryRowContext(ctx, query, args...) // which returns the error
	}
	return s.QueryRowContext(ctx, args...)
}

func (p *prepared) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	s := p.statements[query]
	p.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.statements[query]; first != nil {
		return first, s.Close() //nolint:sqlclosecheck // another caller was first
	}
	p.statements[query] = s
	return s, nil
}
