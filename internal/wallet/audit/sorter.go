package audit

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// sorter orders records by a number, those of one number as they were added. What is
// more than it may hold in memory it writes to a file, in runs that are in order.
type sorter struct {
	hold    int // bytes of records in memory
	records []byte
	places  []recordPlace
	file    *os.File // nil until something was written
	runs    []int64  // where each ends in the file
}

type recordPlace struct {
	key      int64
	from, to int
}

// newSorter makes a sorter that holds so many bytes of records in memory; 0: 4 MiB.
func newSorter(hold int) *sorter {
	if hold == 0 {
		hold = 4 << 20
	}
	return &sorter{hold: hold}
}

// add adds a record, which put appends to what it is given.
func (s *sorter) add(key int64, put func(to []byte) []byte) error {
	from := len(s.records)
	s.records = put(s.records)
	s.places = append(s.places, recordPlace{key, from, len(s.records)})
	if len(s.records) < s.hold {
		return nil
	}
	return s.spill()
}

func (s *sorter) order() {
	slices.SortFunc(s.places, func(a, b recordPlace) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from)) })
}

// spill writes a run. The file has no name once it is open, so that it is gone with
// the process, however that ends.
func (s *sorter) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "assay-verify-"); err != nil {
			return err
		}
		if err := os.Remove(s.file.Name()); err != nil {
			return err
		}
	}
	s.order()
	w := bufio.NewWriterSize(s.file, 64<<10)
	end := int64(0)
	if len(s.runs) > 0 {
		end = s.runs[len(s.runs)-1]
	}
	var head []byte
	for _, p := range s.places {
		head = binary.AppendVarint(head[:0], p.key)
		head = binary.AppendUvarint(head, uint64(p.to-p.from))
		end += int64(len(head) + p.to - p.from)
		_, _ = w.Write(head)
		_, _ = w.Write(s.records[p.from:p.to]) // Flush returns the error
	}
	s.runs = append(s.runs, end)
	s.records, s.places = s.records[:0], s.places[:0]
	return w.Flush()
}

func (s *sorter) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// sorted returns the records in order. Nothing is added after that.
func (s *sorter) sorted() (*sortedRecords, error) {
	out := &sortedRecords{}
	if s.file == nil {
		s.order()
		out.push(&run{memory: s})
		return out, nil
	}
	if len(s.places) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	s.records, s.places = nil, nil
	size := min(64<<10, max(4<<10, s.hold/len(s.runs)))
	from := int64(0)
	for i, end := range s.runs {
		out.push(&run{nth: i, file: bufio.NewReaderSize(io.NewSectionReader(s.file, from, end-from), size)})
		from = end
	}
	return out, out.err
}

// sortedRecords are the records of all runs in order.
type sortedRecords struct {
	runs runs
	err  error
}

// peek returns the next record, which is valid until take; ok is false where there
// is none.
func (r *sortedRecords) peek() (key int64, record []byte, ok bool, err error) {
	if r.err != nil || len(r.runs) == 0 {
		return 0, nil, false, r.err
	}
	return r.runs[0].key, r.runs[0].record, true, nil
}

func (r *sortedRecords) take() {
	switch more, err := r.runs[0].next(); {
	case err != nil:
		r.err = err
	case more:
		heap.Fix(&r.runs, 0)
	default:
		heap.Pop(&r.runs)
	}
}

func (r *sortedRecords) push(n *run) {
	more, err := n.next()
	r.err = errors.Join(r.err, err)
	if more {
		heap.Push(&r.runs, n)
	}
}

// run is a part of the records that is in order.
type run struct {
	nth    int
	memory *sorter // where the records are, unless in file
	file   *bufio.Reader
	key    int64
	record []byte
}

// next moves on; more is false at the end.
func (r *run) next() (more bool, err error) {
	if r.memory != nil {
		if len(r.memory.places) == 0 {
			return false, nil
		}
		p := r.memory.places[0]
		r.memory.places = r.memory.places[1:]
		r.key, r.record = p.key, r.memory.records[p.from:p.to]
		return true, nil
	}
	if r.key, err = binary.ReadVarint(r.file); err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	size, err := binary.ReadUvarint(r.file)
	if err != nil {
		return false, err
	}
	r.record = slices.Grow(r.record[:0], int(size))[:size]
	_, err = io.ReadFull(r.file, r.record)
	return err == nil, err
}

// runs are ordered by the record that each is at.
type runs []*run

func (r runs) Len() int { return len(r) }

func (r runs) Less(a, b int) bool {
	return cmp.Or(cmp.Compare(r[a].key, r[b].key), cmp.Compare(r[a].nth, r[b].nth)) < 0
}

func (r runs) Swap(a, b int) { r[a], r[b] = r[b], r[a] }

// Push is that of heap.Interface.
func (r *runs) Push(v any) { *r = append(*r, v.(*run)) } //nolint:forcetypeassert // we push nothing else

// Pop is that of heap.Interface.
func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
