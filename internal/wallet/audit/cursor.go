package audit

// cursor reads ordered rows page by page and fetches the next page in the background. It
// stops after a page whose last key is not greater than the last key of the previous page.
// Such a page fails another check, and the rows after it are counted as missing.
type cursor[T any] struct {
	rows   []T
	from   *T                         // last row of the previous page
	next   func(last *T) ([]T, error) // returns the page after last; nil: the first page
	order  func(a, b *T) int
	onPage func(rows int)  // called for each page; may be nil
	ahead  chan fetched[T] // the next page; nil: no more pages
}

type fetched[T any] struct {
	rows []T
	err  error
}

// readAhead starts to read. The caller must call stop.
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

// stop waits for the background read.
func (c *cursor[T]) stop() {
	if c.ahead != nil {
		<-c.ahead
	}
}

// peek returns the next row, or nil after the last row.
func (c *cursor[T]) peek() (*T, error) {
	if len(c.rows) == 0 && c.ahead != nil {
		if err := c.nextPage(); err != nil {
			return nil, err
		}
	}
	if len(c.rows) == 0 {
		return nil, nil //nolint:nilnil // no row and no error
	}
	return &c.rows[0], nil
}

// nextPage takes the page that was read ahead and starts to read the next one.
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
