package rest

import (
	"encoding/json"
	"iter"
)

// compacted is a document as it is kept: without the blanks between its tokens, and in
// memory of its own size. A document that is so already is returned itself, and so is one
// that is no JSON: its decoder says where.
func compacted(doc []byte) []byte {
	n := blanks(doc)
	if n == 0 && cap(doc)-len(doc) <= len(doc)/8 || !json.Valid(doc) {
		return doc
	}
	out := make([]byte, 0, len(doc)-n)
	for token := range tokens(doc) {
		out = append(out, token...)
	}
	return out
}

// tokens yields the parts between the white space outside of strings.
func tokens(doc []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		begin, inside := 0, false
		for i := 0; i < len(doc); i++ {
			switch c := doc[i]; {
			case c == '"':
				inside = !inside
			case inside && c == '\\':
				i++
			case !inside && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
				if i > begin && !yield(doc[begin:i]) {
					return
				}
				begin = i + 1
			}
		}
		if begin < len(doc) {
			yield(doc[begin:])
		}
	}
}

// blanks counts the white space outside of strings.
func blanks(doc []byte) int {
	n := len(doc)
	for token := range tokens(doc) {
		n -= len(token)
	}
	return n
}
