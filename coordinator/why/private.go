package why

import (
	"strconv"
	"strings"
)

// hide replaces the names of units that the viewer may not see in a text that
// other packages have worded, such as the reason of an eviction. A name is
// "namespace/alloc|job/name/n".
func (v Viewer) hide(text string) string {
	if v.Operator || !strings.Contains(text, "/") {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, isBetweenNames)
		switch {
		case end < 0:
			end = len(text)
		case end == 0:
			end = 1
			for end < len(text) && text[end]&0xc0 == 0x80 { // the rest of one rune
				end++
			}
		}
		b.WriteString(v.hideName(text[:end]))
		text = text[end:]
	}
	return b.String()
}

func isBetweenNames(r rune) bool {
	return r != '/' && r != '-' && r != '.' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

// hideName replaces a word that names a unit of another tenant.
func (v Viewer) hideName(word string) string {
	trimmed := strings.TrimRight(word, ".-")
	parts := strings.Split(trimmed, "/")
	if len(parts) != 4 || parts[1] != "alloc" && parts[1] != "job" || v.Sees(parts[0]) {
		return word
	}
	if _, err := strconv.Atoi(parts[3]); err != nil {
		return word
	}
	return "a unit of another tenant" + word[len(trimmed):]
}
