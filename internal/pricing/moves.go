package pricing

// moves contains the moves of the names of a market by class. The last element contains
// the moves of all classes.
type moves [classes + 1][]Log

// collect sets m to the moves between two columns. It ignores prices that were below floor
// in the earlier column.
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

// medians returns the median of all moves and the median of each class. A class with fewer
// than 50 names gets the median of all moves.
func (m *moves) medians() (middle Log, byClass [classes]Log) {
	middle = middleOf(m[classes])
	for c := range byClass {
		byClass[c] = middle
		if len(m[c]) >= minClass {
			byClass[c] = middleOf(m[c])
		}
	}
	return middle, byClass
}
