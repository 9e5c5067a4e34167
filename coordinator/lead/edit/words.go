package edit

import (
	"fmt"
	"strings"
)

// counted appends "3 jobs" and the like; nothing for a count of 0.
func counted(list []string, n int, noun string) []string {
	switch {
	case n == 1:
		return append(list, "1 "+noun)
	case n > 1:
		return append(list, fmt.Sprintf("%d %ss", n, noun))
	}
	return list
}

// listed is "a, b and c".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
