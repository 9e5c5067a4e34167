package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/musterd/muster/api/text"
)

// space skips insignificant white space.
func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// peek is the next byte, or 0 at the end.
func (d *decoder) peek() byte {
	if d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

// word consumes w if it comes next.
func (d *decoder) word(w string) bool {
	if d.pos+len(w) > len(d.data) || string(d.data[d.pos:d.pos+len(w)]) != w {
		return false
	}
	d.pos += len(w)
	return true
}

// longText is the length in bytes from which a string shares the memory of its document
// (Decoder.Sharing). Shorter strings are copies: one of them alone would keep a document.
const longText = 1 << 10

// part is the string of a part of the document.
func (d *decoder) part(from, to int) string {
	if d.sharing && to-from >= longText {
		return unsafe.String(&d.data[from], to-from) // Sharing: the document is not changed
	}
	return string(d.data[from:to])
}

// quoted reads a string; peek is its opening quote.
func (d *decoder) quoted() (string, *Error) {
	start := d.pos
	escaped := false
	for i := start + 1; i < len(d.data); i++ {
		switch c := d.data[i]; {
		case c == '"':
			d.pos = i + 1
			if !escaped {
				return d.part(start+1, i), nil
			}
			var s string
			if err := json.Unmarshal(d.data[start:i+1], &s); err != nil || !d.stored && text.HasHalfPair(d.data[start:i+1]) {
				d.pos = start
				return "", d.syntax("a string with valid escapes")
			}
			return s, nil
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			d.pos = i
			return "", d.syntax("a string without control characters")
		}
	}
	d.pos = len(d.data)
	return "", d.syntax("the closing quote of a string")
}

func isNumberStart(c byte) bool { return c == '-' || (c >= '0' && c <= '9') }

// number reads a number and returns its text.
func (d *decoder) number() (string, *Error) {
	start := d.pos
	digits := func() int {
		n := 0
		for d.peek() >= '0' && d.peek() <= '9' {
			d.pos++
			n++
		}
		return n
	}
	if d.peek() == '-' {
		d.pos++
	}
	first := d.peek()
	if n := digits(); n == 0 || (first == '0' && n > 1) {
		d.pos = start
		return "", d.syntax("a number")
	}
	if d.peek() == '.' {
		d.pos++
		if digits() == 0 {
			return "", d.syntax("digits after '.'")
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.pos++
		if c := d.peek(); c == '+' || c == '-' {
			d.pos++
		}
		if digits() == 0 {
			return "", d.syntax("digits of an exponent")
		}
	}
	return string(d.data[start:d.pos]), nil
}

// checkText notes the first character of a string outside of a class.
func (d *decoder) checkText(s string, c text.Class) *Error {
	if d.stored {
		return nil
	}
	at := c.Outside(s)
	if at < 0 {
		return nil
	}
	r, _ := utf8.DecodeRuneInString(s[at:])
	found := fmt.Sprintf("a character at byte %d that is not printed, %U: leave it out", at, r)
	if r == 0 {
		found = fmt.Sprintf("a zero byte at byte %d: leave it out", at)
	}
	e := d.fail(strconv.QuoteToASCII(excerpt(s)) + " has " + found)
	e.Problem = Unprintable
	return d.note(e)
}

// where prints the current path.
func (d *decoder) where() string {
	var b strings.Builder
	for _, s := range d.path {
		switch {
		case s.name == "" && len(d.path) > 0 && b.Len() > 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		default:
			b.WriteString(Join("", s.name, b.Len() > 0))
		}
	}
	return b.String()
}

// Join appends a field name or a map's key to a path: ".name", or ["the key"]
// where it is not a plain word.
func Join(path, name string, inner bool) string {
	plain := name != "" && len(name) <= 64
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			plain = false
		}
	}
	switch {
	case !plain:
		return path + "[" + strconv.Quote(excerpt(name)) + "]"
	case inner || path != "":
		return path + "." + name
	}
	return name
}

func (d *decoder) fail(message string) *Error { return &Error{Path: d.where(), Message: message} }

// syntax reports the expected text at the current position.
func (d *decoder) syntax(want string) *Error {
	found := "the end of the document"
	if d.pos < len(d.data) {
		rest := []rune(string(d.data[d.pos:min(len(d.data), d.pos+4)]))
		found = strconv.QuoteRune(rest[0])
	}
	before := d.data[:min(d.pos, len(d.data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	return d.fail(fmt.Sprintf("line %d, column %d: want %s, found %s", line, column, want, found))
}

// wrongType notes the kind of value found, and passes over the value. It returns a
// syntax error where there is no value.
func (d *decoder) wrongType(want string) *Error {
	start := d.pos
	fault, is := d.typeFound(want)
	if !is {
		return fault
	}
	d.pos = start
	return d.pass(fault)
}

// typeFound words the kind of value found; is reports whether there is a value at all,
// else the error is one of the syntax.
func (d *decoder) typeFound(want string) (fault *Error, is bool) {
	c := d.peek()
	switch {
	case c == '"':
		s, err := d.quoted()
		if err != nil {
			return err, false
		}
		return d.fail(fmt.Sprintf("want %s, got the string %q", want, excerpt(s))), true
	case isNumberStart(c):
		n, err := d.number()
		if err != nil {
			return err, false
		}
		hint := ""
		if want == "a string" {
			hint = " (put it in quotes)"
		}
		return d.fail(fmt.Sprintf("want %s, got the number %s%s", want, excerpt(n), hint)), true
	case c == '{':
		return d.fail(fmt.Sprintf("want %s, got an object", want)), true
	case c == '[':
		return d.fail(fmt.Sprintf("want %s, got an array", want)), true
	case c == 't' && d.word("true"), c == 'f' && d.word("false"):
		return d.fail(fmt.Sprintf("want %s, got %t", want, c == 't')), true
	}
	return d.syntax("a value"), false
}

// excerpt shortens a quotation for a message.
func excerpt(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
