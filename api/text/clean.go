package text

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Stored reads a stored document by the decoder of new documents. An earlier version may
// have accepted characters that the decoder refuses: U+FFFD takes their place.
func Stored[T, Refusal any](decode func([]byte) (*T, *Refusal), document []byte) (*T, *Refusal) {
	v, refused := decode(document)
	if refused == nil {
		return v, nil
	}
	if clean := Clean(document, Line); !bytes.Equal(clean, document) {
		if v, refused := decode(clean); refused == nil {
			return v, nil
		}
	}
	return nil, refused
}

// Clean is a JSON document with U+FFFD in place of each character outside of a class and of
// each half of a surrogate pair. A document without them is returned as given.
func Clean(document []byte, c Class) []byte {
	var clean []byte
	from := 0 // of the part of document that clean does not have yet
	for at := 0; at < len(document); {
		size, bad := 1, false
		switch b := document[at]; {
		case b == '\\':
			var r rune
			r, size = escaped(document[at:])
			bad = r == utf8.RuneError && surrogate(document[at:]) != 0 || r != utf8.RuneError && !c.Has(r)
		case b >= 0x7f:
			var r rune
			r, size = utf8.DecodeRune(document[at:])
			bad = !c.Has(r) || r == utf8.RuneError && size == 1
		}
		if bad {
			clean = append(append(clean, document[from:at]...), "\uFFFD"...)
			from = at + size
		}
		at += size
	}
	if from == 0 {
		return document
	}
	return append(clean, document[from:]...)
}

// escaped reads the escape at the beginning of a text, and the pair of a surrogate.
func escaped(text []byte) (r rune, size int) {
	if len(text) < 2 {
		return utf8.RuneError, len(text)
	}
	switch text[1] {
	case 'b', 'f', 'n', 'r', 't':
		return map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[text[1]], 2
	case 'u':
		n, err := strconv.ParseUint(string(text[2:min(6, len(text))]), 16, 16)
		switch {
		case err != nil || len(text) < 6:
			return utf8.RuneError, 2
		case surrogate(text) == 0xd800 && surrogate(text[6:]) == 0xdc00:
			return utf8.MaxRune, 12 // no control character
		case surrogate(text) != 0:
			return utf8.RuneError, 6
		}
		return rune(n), 6
	}
	return rune(text[1]), 2
}

// HasHalfPair reports whether a string of JSON, with the escapes, has half a surrogate pair:
// encoding/json silently replaces the half, and databases refuse the string.
func HasHalfPair(quoted []byte) bool {
	for i := bytes.IndexByte(quoted, '\\'); i >= 0 && i+1 < len(quoted); {
		half := surrogate(quoted[i:])
		switch {
		case half == 0xdc00:
			return true
		case half == 0xd800:
			if surrogate(quoted[i+6:]) != 0xdc00 {
				return true
			}
			i += 12
		default:
			i += 2
		}
		next := bytes.IndexByte(quoted[i:], '\\')
		if next < 0 {
			return false
		}
		i += next
	}
	return false
}

// surrogate is 0xd800 where an escape is the first half of a pair, 0xdc00 where it is the
// second half, and 0 for all other text.
func surrogate(text []byte) uint64 {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil || n < 0xd800 || n > 0xdfff {
		return 0
	}
	return n &^ 0x3ff
}
