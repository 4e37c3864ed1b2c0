package config

// maxTypos is the maximum edit distance of a suggestion.
const maxTypos = 3

// lettersPerTypo is the number of letters that a name must have for each edit. It applies only
// to environment variables, because they can belong to another program.
const lettersPerTypo = 5

// nearest returns the name with the smallest edit distance to text. It returns an empty
// string if the distance of all names exceeds maxTypos.
func nearest(text string, names []string) string {
	best, least := "", maxTypos+1
	for _, name := range names {
		if d := distance(text, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance returns the edit distance of a and b: the number of letters to insert, delete or
// replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
