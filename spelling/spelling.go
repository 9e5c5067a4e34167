// Package spelling finds the known name that a person may have meant by a
// misspelt one. It decides nothing: its callers show the name as a hint.
package spelling

// Nearest returns the name with the fewest changed letters, the first of several,
// or "" where all of them differ in more than most letters. Case counts. It takes time in proportion
// to the product of the lengths, so the caller bounds them.
func Nearest(word string, names []string, most int) string {
	best, fewest := "", most+1
	for _, name := range names {
		if d := distance(word, name); d < fewest {
			best, fewest = name, d
		}
	}
	return best
}

// distance is Levenshtein's: the bytes to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
