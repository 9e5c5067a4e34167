// Package spelling finds the known name that a person may have meant by a
// misspelt one. It decides nothing: its callers show the name as a hint.
package spelling

// Nearest returns the name with the fewest edits, the first of several, or ""
// where each name takes more than most edits. Case counts. Its time is in
// proportion to the product of the lengths, so the caller bounds them.
func Nearest(word string, names []string, most int) string {
	best, fewest := "", most+1
	for _, name := range names {
		if d := distance(word, name); d < fewest {
			best, fewest = name, d
		}
	}
	return best
}

// distance counts the edits that make b of a: a byte inserted, removed or
// replaced, or two neighbours that change places. No byte is edited twice
// (optimal string alignment, which is Damerau's distance with that restriction).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
