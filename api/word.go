package api

import (
	"slices"
	"strings"
)

// checkWord refuses a word that is none of some; "" is left out.
func checkWord(path, word string, some ...string) *Status {
	if word == "" || slices.Contains(some, word) {
		return nil
	}
	last := len(some) - 1
	return invalid(path, "%q: want %s or %s", clip(word), strings.Join(some[:last], ", "), some[last])
}
