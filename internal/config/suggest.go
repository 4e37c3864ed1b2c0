package config

// maxTypos is how many letters may differ between a name and the one it suggests.
const maxTypos = 3

// lettersPerTypo is how many letters a name must have for each that differs, where it may
// belong to another program.
const lettersPerTypo = 5

// nearest returns the name that is most similar to text, or "" if none is similar.
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
