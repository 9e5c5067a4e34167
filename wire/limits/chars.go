package limits

import (
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// class has a bit per class of characters for each byte.
var class = classes()

func classes() (table [256]uint8) {
	for b := range table {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '.' || b == '_' || b == '-'
		if letter {
			table[b] |= 1 << names
		}
		if letter || b == '/' {
			table[b] |= 1 << keys
		}
		if b > ' ' && b < 0x7f {
			table[b] |= 1 << visible
		}
		if b >= ' ' && b < 0x7f {
			table[b] |= 1 << line
		}
	}
	return table
}

// firstOutside returns the position of the first byte outside a class, or -1.
func firstOutside(s string, c chars) int {
	bit := uint8(1) << c
	for i := range len(s) {
		if class[s[i]]&bit == 0 {
			return i
		}
	}
	return -1
}

// keyText is a map's key as text.
func keyText(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return key.String()
	}
	return strconv.FormatInt(key.Int(), 10)
}

// Plain returns text of at most most bytes that a terminal and a log take as
// one line: white space that is not a blank becomes a blank, other control
// characters and characters that change the direction of text become '?', and
// a longer text is cut between characters and ends in "…".
func Plain(s string, most int) string {
	if len(s) > most {
		end := max(0, most-len("…"))
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	if firstOutside(s, line) < 0 {
		return s
	}
	return strings.Map(printable, s)
}

// printable maps a rune to one that is not wider in bytes; an invalid byte,
// which ranges as U+FFFD, becomes '?' too.
func printable(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
		return ' '
	case unicode.Is(unicode.Cc, r), r == utf8.RuneError,
		r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c, r == 0xfeff:
		return '?'
	}
	return r
}
