package db

import (
	"context"
	"database/sql"
	"sync"
)

// prepared is a connection pool that prepares each query once and keeps it. Parsing a
// small query costs as much as running it. Statements are never removed, so the number of
// different texts must be small.
type prepared struct {
	*sql.DB
	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

// QueryContext runs a query that it prepares on the first call.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // the statement is kept for the next call
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRowContext runs a query for one row. It prepares the query on the first call.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // the statement is kept for the next call
	if err != nil {
		return p.DB.QueryRowContext(ctx, query, args...) // returns the error of the query
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
		return first, s.Close() //nolint:sqlclosecheck // another goroutine prepared it first
	}
	p.statements[query] = s
	return s, nil
}
