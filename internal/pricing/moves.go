package pricing

// moves collects by how much the names of a market moved, by class and, last, in total.
type moves [classes + 1][]Log

// collect collects the moves of the prices that voted in an earlier column.
func (m *moves) collect(from, to []Log, class []Class, floor Log) {
	for i := range m {
		m[i] = m[i][:0]
	}
	for i, was := range from {
		is := at(to, i)
		if was < floor || is == none {
			continue
		}
		c := class[i]
		m[c] = append(m[c], is-was)
		m[classes] = append(m[classes], is-was)
	}
}

// medians returns the median of all moves, and that of each class: of a class with too few
// names it is that of all.
func (m *moves) medians() (middle Log, byClass [classes]Log) {
	middle = middleOf(m[classes])
	for c := range byClass {
		byClass[c] = middle
		if len(m[c]) >= fewestClass {
			byClass[c] = middleOf(m[c])
		}
	}
	return middle, byClass
}
