package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// visible is the only way to the program's standard output and error. It shows
// control characters as \u001b, since the printed text comes from hosts and
// tenants too, and a terminal obeys such characters: it would hide lines, set its
// title, or type for the operator. In JSON the escape is the same character; YAML
// escapes the rest itself (see onlyInJSON).
//
// New lines and tabs pass; tables keep them out of their cells. So do the
// colours that the program itself uses, on a terminal.
type visible struct {
	to      io.Writer
	colours bool
	failure error  // of the first Write that failed
	rest    []byte // the beginning of a character that the next Write goes on with
}

func newVisible(to io.Writer) io.Writer {
	if _, already := to.(*visible); already || to == nil {
		return to
	}
	return &visible{to: to, colours: isTerminal(to)}
}

// raw is the stream itself, for output that nobody reads on a terminal. A failure to write
// counts as one of visible's own.
func (v *visible) raw() io.Writer { return rawOutput{v} }

type rawOutput struct{ v *visible }

// Write implements io.Writer.
func (r rawOutput) Write(b []byte) (int, error) {
	if r.v.failure != nil {
		return 0, r.v.failure
	}
	n, err := r.v.to.Write(b)
	r.v.failure = err
	return n, err
}

// ownColours are the sequences of style.paint.
var ownColours = [][]byte{
	[]byte("\x1b[0m"), []byte("\x1b[" + bold + "m"), []byte("\x1b[" + dim + "m"), []byte("\x1b[" + red + "m"),
	[]byte("\x1b[" + green + "m"), []byte("\x1b[" + yellow + "m"), []byte("\x1b[" + cyan + "m"),
}

// Write implements io.Writer.
func (v *visible) Write(b []byte) (int, error) {
	text := b
	if len(v.rest) > 0 {
		text, v.rest = append(v.rest, b...), nil
	}
	out := make([]byte, 0, len(text))
next:
	for len(text) > 0 {
		if v.colours && text[0] == '\x1b' {
			for _, c := range ownColours {
				if bytes.HasPrefix(text, c) {
					out, text = append(out, c...), text[len(c):]
					continue next
				}
			}
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1 && !utf8.FullRune(text):
			v.rest, text = bytes.Clone(text), nil
			continue next
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || !isControl(r):
			out = append(out, text[:n]...)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	if v.failure != nil { // text behind a gap is of no use
		return 0, v.failure
	}
	if _, err := v.to.Write(out); err != nil {
		v.failure = err
		return 0, err
	}
	return len(b), nil
}

// isControl reports the characters that a terminal obeys, and those that change
// the order or the lines of the text around them.
func isControl(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // direction
		return true
	}
	return r == 0x2028 || r == 0x2029 // line and paragraph separators
}

// oneCell shows the characters that would end a cell of a table or its line.
func oneCell(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`, "\v", `\v`, "\f", `\f`).Replace(s)
}
