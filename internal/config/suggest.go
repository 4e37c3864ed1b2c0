package config

// maxTypos is how many letters a name may be off to be taken for another.
const maxTypos = 3

// lettersPerTypo is how many letters a name must have for each that is off,
// where it may as well be another program's.
const lettersPerTypo = 5

// nearest returns the name that text was most likely meant to be, or "".
func nearest(text string, names []string) string {
	best, least := "", maxTypos+1
	for _, name := range names {
		if d := distance(text, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace to make b of a.
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
