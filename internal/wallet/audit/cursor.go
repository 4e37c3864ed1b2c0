package audit

// cursor reads rows page by page, in order, a page ahead of who takes them. Where a
// page ends with a row whose place is invalid, so that it leads nowhere, that is
// the end: such a row fails already, and those behind it are counted.
type cursor[T any] struct {
	rows   []T
	from   *T                         // after which the last page was
	next   func(last *T) ([]T, error) // those after last, as many as are read ahead; nil: the first
	order  func(a, b *T) int
	onPage func(rows int)  // called for each page; may be nil
	ahead  chan fetched[T] // the next page; nil: there is none
}

type fetched[T any] struct {
	rows []T
	err  error
}

// readAhead begins to read. It ends before its caller does, by stop.
func readAhead[T any](next func(last *T) ([]T, error), order func(a, b *T) int) *cursor[T] {
	c := &cursor[T]{next: next, order: order}
	c.fetch()
	return c
}

func (c *cursor[T]) fetch() {
	to, after := make(chan fetched[T], 1), c.from
	c.ahead = to
	go func() {
		rows, err := c.next(after)
		to <- fetched[T]{rows, err}
	}()
}

// stop waits for what is being read.
func (c *cursor[T]) stop() {
	if c.ahead != nil {
		<-c.ahead
	}
}

// peek returns the next row; nil: there are no more.
func (c *cursor[T]) peek() (*T, error) {
	if len(c.rows) == 0 && c.ahead != nil {
		if err := c.nextPage(); err != nil {
			return nil, err
		}
	}
	if len(c.rows) == 0 {
		return nil, nil //nolint:nilnil // there is none, and nothing went wrong
	}
	return &c.rows[0], nil
}

// nextPage takes the page that was read ahead, and starts to read another.
func (c *cursor[T]) nextPage() error {
	page := <-c.ahead
	c.ahead = nil
	if page.err != nil {
		return page.err
	}
	c.rows = page.rows
	if c.onPage != nil {
		c.onPage(len(c.rows))
	}
	if len(c.rows) < ahead {
		return nil
	}
	last := c.rows[len(c.rows)-1]
	if c.from == nil || c.order(&last, c.from) > 0 {
		c.from = &last
		c.fetch()
	}
	return nil
}

func (c *cursor[T]) take() { c.rows = c.rows[1:] }
