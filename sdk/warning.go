package sdk

import (
	"net/http"
	"strconv"
	"strings"
)

// WarningHandler takes the warnings of answers, refusals among them, as client-go's
// WarningHandler does: code is 299 of all that Muster sends, agent its sender, text
// for a person. It is called in the goroutine of the call, before the call returns.
type WarningHandler func(code int, agent, text string)

// Bounds of the warnings of one answer.
const (
	mostWarnings = 32
	longestText  = 2048 // in bytes
)

// deliver hands over the warnings of an answer.
func (h WarningHandler) deliver(header http.Header) {
	if h == nil {
		return
	}
	left := mostWarnings
	for _, line := range header.Values("Warning") {
		for left > 0 {
			code, agent, text, rest, ok := parseWarning(line)
			if !ok {
				break
			}
			h(code, agent, text)
			left--
			line = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(rest, " \t"), ","), " \t")
		}
	}
}

// parseWarning reads the first warning of a header line: a code of three digits, an
// agent, a quoted text and perhaps a quoted date. ok is false where it is none, and
// for a text that is longer than the bound or would move a terminal's cursor.
func parseWarning(line string) (code int, agent, text, rest string, ok bool) {
	number, line, found := strings.Cut(line, " ")
	code, err := strconv.Atoi(number)
	if !found || err != nil || len(number) != 3 || code < 100 {
		return 0, "", "", "", false
	}
	agent, line, found = strings.Cut(line, " ")
	if !found || agent == "" || strings.ContainsAny(agent, "\",") {
		return 0, "", "", "", false
	}
	if text, rest, ok = unquote(line); !ok || text == "" {
		return 0, "", "", "", false
	}
	if after, dated := strings.CutPrefix(rest, ` "`); dated {
		_, rest, _ = strings.Cut(after, `"`)
	}
	return code, agent, text, rest, true
}

// unquote reads the quoted string at the beginning of a line.
func unquote(line string) (text, rest string, ok bool) {
	line, ok = strings.CutPrefix(line, `"`)
	if !ok {
		return "", "", false
	}
	var b strings.Builder
	for i := 0; i < len(line) && b.Len() < longestText; i++ {
		switch c := line[i]; {
		case c == '"':
			return b.String(), line[i+1:], true
		case c == '\\' && i+1 < len(line):
			i++
			c = line[i]
			fallthrough
		default:
			if c < ' ' || c > '~' {
				return "", "", false
			}
			b.WriteByte(c)
		}
	}
	return "", "", false
}
