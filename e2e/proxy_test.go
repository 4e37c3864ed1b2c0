package e2e

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// cut is how the proxy treats a commit.
type cut int

const (
	passes  cut = iota
	refused     // the connection closes before the database receives the commit
	unknown     // the connection closes after the commit, before the response
	late        // the proxy stops forwarding, including the commit, until resume is closed
)

// proxy forwards connections from servers to PostgreSQL and detects commits.
type proxy struct {
	listener net.Listener
	socket   string
	database string

	// commit decides how the proxy treats each commit. If it is nil, the proxy forwards all
	// commits. Tests set it before the first connection. The proxy calls it concurrently.
	commit func() cut
	frozen atomic.Bool   // no requests are forwarded
	resume chan struct{} // closing it resumes forwarding
	delay  atomic.Int64  // delay of each part of a response
	links  sync.WaitGroup
	mu     sync.Mutex
	open   map[net.Conn]struct{}
}

// newProxy starts a proxy for a database URL.
func newProxy(t *testing.T, target string, commit func() cut) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: l, socket: filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"), database: u.Path,
		commit: commit, resume: make(chan struct{}), open: map[net.Conn]struct{}{},
	}
	p.links.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.drop()
		p.links.Wait()
	})
	return p
}

// url returns the URL of the database through the proxy.
func (p *proxy) url() string {
	return "postgres://postgres@" + p.listener.Addr().String() + p.database + "?sslmode=disable"
}

// drop closes all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		database, err := net.Dial("unix", p.socket)
		if err != nil {
			_ = client.Close() // the database is unavailable
			continue
		}
		l := &link{proxy: p, client: client, database: database}
		p.mu.Lock()
		p.open[client], p.open[database] = struct{}{}, struct{}{}
		p.mu.Unlock()
		var both sync.WaitGroup
		both.Go(l.requests)
		both.Go(l.responses)
		p.links.Go(func() {
			both.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.open, client)
			delete(p.open, database)
		})
	}
}

// link is one connection through the proxy.
type link struct {
	proxy            *proxy
	client, database net.Conn
	mute             atomic.Bool // the next response closes the connection
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.database.Close()
}

// responses forwards messages of the database.
func (l *link) responses() {
	defer l.close()
	piece := make([]byte, 32<<10)
	for {
		n, err := l.database.Read(piece)
		if err != nil || l.mute.Load() {
			return
		}
		if d := l.proxy.delay.Load(); d > 0 {
			time.Sleep(time.Duration(d))
		}
		if _, err := l.client.Write(piece[:n]); err != nil {
			return
		}
	}
}

// requests forwards messages of the client.
func (l *link) requests() {
	defer l.close()
	reported := pgproto3.NewBackend(l.client, l.client)
	first, err := reported.ReceiveStartupMessage()
	if err != nil || !l.forward(first) {
		return
	}
	for {
		message, err := reported.Receive()
		if err != nil {
			return
		}
		if l.proxy.commit != nil && commits(message) {
			switch l.proxy.commit() {
			case refused:
				return
			case unknown:
				l.mute.Store(true)
			case late:
				l.proxy.frozen.Store(true)
			case passes:
			}
		}
		if l.proxy.frozen.Load() {
			<-l.proxy.resume
		}
		if !l.forward(message) {
			return
		}
	}
}

func (l *link) forward(message pgproto3.FrontendMessage) bool {
	b, err := message.Encode(nil)
	if err == nil {
		_, err = l.database.Write(b)
	}
	return err == nil
}

// commits reports whether a message is a COMMIT, as a simple query or a prepared one.
func commits(message pgproto3.FrontendMessage) bool {
	var text string
	switch m := message.(type) {
	case *pgproto3.Query:
		text = m.String
	case *pgproto3.Parse:
		text = m.Query
	}
	return strings.EqualFold(strings.TrimRight(text, "; "), "commit")
}
