// Package text decides which characters the texts of a document may have, by classes of
// fields, and cleans documents that were stored before a rule. Package api/internal/strict
// refuses the characters, with the place in the document. Lengths and the grammar of names
// are the business of package api.
package text

import (
	"fmt"
	"strings"
)

// Class is a class of characters.
type Class uint8

const (
	// Line: printable text, without line feeds, control characters and the characters for
	// the direction of a text. Fields without the tag `text` and keys of maps have Line.
	Line Class = iota
	// Lines: Line with tabs and line feeds (tag `text:"lines"`).
	Lines
	// Free: every character but NUL, which no command can be started with and no database
	// stores (tag `text:"free"`).
	Free
)

// ClassOf is the class of a field's tag. ClassOf panics on other words, which are mistakes
// in the program.
func ClassOf(tag string) Class {
	switch tag {
	case "":
		return Line
	case "lines":
		return Lines
	case "free":
		return Free
	}
	panic(fmt.Sprintf("text: the tag text:%q names no class of characters", tag))
}

// Has reports whether a text of the class may have a character.
func (c Class) Has(r rune) bool {
	switch {
	case r == 0:
		return false
	case c == Free:
		return true
	case r == '\t', r == '\n':
		return c == Lines
	case r < ' ', r >= 0x7f && r <= 0x9f, r == 0x2028, r == 0x2029: // controls, and line ends of Unicode
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // directions
		return false
	}
	return true
}

// Outside is the index of the first character outside of the class, -1 for none.
func (c Class) Outside(s string) int {
	if isPlain(s) {
		return -1
	}
	return strings.IndexFunc(s, func(r rune) bool { return !c.Has(r) })
}

// isPlain reports whether a text has printable ASCII alone, as most texts have.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
