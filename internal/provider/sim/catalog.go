package sim

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// phases identifies the set of phases that an item has. 0 means none.
type phases uint8

const (
	nebula  phases = 1 // Phase 1-4, Ruby, Sapphire, Black Pearl
	verdant phases = 2 // Phase 1-4, Emerald
)

// item is one entry of the catalog.
type item struct {
	name   string
	value  int32 // median of the asks, as mil
	phases phases
	trait  trait
}

// Catalog holds the items of the simulator. It is immutable and always has the same
// order: the fixtures, then all other items shuffled. The first n items are therefore a
// representative sample.
type Catalog struct {
	items  []item
	sorted []int32 // indices into items, sorted by name
	extra  int     // number of names with a suffix, beyond items
}

// NewCatalog returns the catalog of about 37,600 names. Every call returns the same
// names.
func NewCatalog() *Catalog {
	b := newBuilder()
	for _, f := range fixtures {
		b.addFixture(f)
	}
	b.addWeapons()
	b.addKnives()
	b.addGloves()
	b.addEvents()
	b.addSmall()
	b.shuffle(len(fixtures))
	return newCatalog(b.items, 0)
}

// newCatalog returns a catalog of items and of extra names. An extra name is an
// item's name with a suffix.
func newCatalog(items []item, extra int) *Catalog {
	c := &Catalog{items: items, extra: extra, sorted: make([]int32, len(items))}
	for i := range c.sorted {
		c.sorted[i] = int32(i)
	}
	slices.SortFunc(c.sorted, func(a, b int32) int { return cmp.Compare(items[a].name, items[b].name) })
	return c
}

// resize returns a catalog with the first n names. If n is larger than the catalog,
// the additional names have a suffix and use no memory.
func (c *Catalog) resize(n int) *Catalog {
	if n <= len(c.items) {
		return newCatalog(c.items[:n:n], 0)
	}
	return &Catalog{items: c.items, sorted: c.sorted, extra: n - len(c.items)}
}

// Len returns the number of names.
func (c *Catalog) Len() int { return len(c.items) + c.extra }

// Names returns all names in catalog order. They are distinct.
func (c *Catalog) Names() []string {
	names := make([]string, c.Len())
	for i := range names {
		names[i] = c.name(i)
	}
	return names
}

// lotSuffix separates an item's name from the number of an additional name.
const lotSuffix = " · Lot "

// name returns the i-th name.
func (c *Catalog) name(i int) string {
	base := c.items[i%len(c.items)].name
	if i < len(c.items) {
		return base
	}
	return base + lotSuffix + strconv.Itoa(i/len(c.items))
}

// find returns the index of a name and whether the catalog contains it.
func (c *Catalog) find(name string) (int, bool) {
	if i, ok := c.findBase(name); ok {
		return i, true
	}
	cut := strings.LastIndex(name, lotSuffix)
	if cut < 0 {
		return 0, false
	}
	lot, err := strconv.Atoi(name[cut+len(lotSuffix):])
	base, ok := c.findBase(name[:cut])
	if err != nil || !ok || lot < 1 || lot > c.Len()/len(c.items) {
		return 0, false
	}
	i := lot*len(c.items) + base
	// Atoi also accepts "+1" and "01", but these are not valid names.
	return i, i < c.Len() && c.name(i) == name
}

func (c *Catalog) findBase(name string) (int, bool) {
	at, ok := slices.BinarySearchFunc(c.sorted, name, func(i int32, name string) int {
		return cmp.Compare(c.items[i].name, name)
	})
	if !ok {
		return 0, false
	}
	return int(c.sorted[at]), true
}

// WriteNames writes the catalog's names, one per line. If json is true, each line is a
// JSON string. Otherwise a newline, tab or backslash in a name is escaped as in Go.
func WriteNames(w io.Writer, json bool) error {
	plain := strings.NewReplacer("\n", `\n`, "\t", `\t`, `\`, `\\`)
	var line []byte
	for _, name := range NewCatalog().Names() {
		line = line[:0]
		if json {
			line = appendString(line, name)
		} else {
			line = append(line, plain.Replace(name)...)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// appendString appends s as a JSON string. s must be valid UTF-8.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			b, _ = jsontext.AppendQuote(b, s) // fails only for invalid UTF-8
			return b
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// builder collects the catalog's items.
type builder struct {
	rng   stream
	items []item
	taken map[string]bool // keys that claim has seen
}

func newBuilder() *builder {
	return &builder{rng: catalogSeed, taken: make(map[string]bool, 1<<16)}
}

// claim reports whether key is new, and records it.
func (b *builder) claim(key string) bool {
	if b.taken[key] {
		return false
	}
	b.taken[key] = true
	return true
}

// add adds an item unless a fixture has the same name.
func (b *builder) add(k kind, name string, rank int, factor int64, p phases) {
	if b.claim("= " + name) {
		b.items = append(b.items, item{name: name, value: int32(valueAt(k, rank, factor)), phases: p})
	}
}

func (b *builder) addFixture(f fixture) {
	it := item{name: f.name, value: int32(f.value), trait: f.trait}
	for finish, p := range nebulaFinishes {
		if strings.Contains(f.name, finish) {
			it.phases = p
		}
	}
	b.claim("= " + f.name)
	b.items = append(b.items, it)
}

// shuffle shuffles all but the first keep items.
func (b *builder) shuffle(keep int) {
	rest := b.items[keep:]
	for i := len(rest) - 1; i > 0; i-- {
		j := b.rng.below(i + 1)
		rest[i], rest[j] = rest[j], rest[i]
	}
}
